package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/fsblob"
)

// backup copies a data directory, also while a server uses it.
func backup(c *cli) *cobra.Command {
	var dir string
	return c.command(spec{
		use: "backup DIR", short: "back up the data directory, also while the server runs",
		long: `Copies the data directory to DIR, also while the server runs. The copy contains
everything that the server acknowledged before the command started, except
incomplete uploads. Another run with the same DIR copies only new files and removes
deleted ones. To restore, start a server with a copy of DIR as its --data-dir.`,
		min: 1,
		max: 1,
		flags: func(fs *flagSet) {
			fs.StringVar(&dir, "data-dir", "data", "`directory` that holds the server's state")
		},
		run: func(ctx context.Context, args []string) error {
			started := time.Now()
			return database{dir: dir}.use(ctx, func(db *sqlstore.DB) error {
				done, err := backupAll(ctx, db, dir, args[0])
				if err != nil {
					return err
				}
				if err := db.NoteBackup(ctx, started); err != nil {
					return err
				}
				fmt.Fprintln(c.out, done)
				return nil
			})
		},
	})
}

// backupAll copies the database and the files of a data directory. done describes the copy for
// people.
func backupAll(ctx context.Context, db *sqlstore.DB, dir, to string) (done string, err error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return "", err
	}
	next := filepath.Join(to, databaseName+".next")
	if _, err := os.Stat(filepath.Join(dir, "blobs")); errors.Is(err, fs.ErrNotExist) {
		if err := backupDatabase(ctx, db, next); err != nil {
			return "", err
		}
		return fmt.Sprintf("Backed up the database to %s. The stored files are outside the data directory: copy the bucket or directory of --blob-url now.", to), os.Rename(next, filepath.Join(to, databaseName))
	}
	src, err := fsblob.New(filepath.Join(dir, "blobs"))
	if err != nil {
		return "", err
	}
	defer src.Close()
	dst, err := fsblob.New(filepath.Join(to, "blobs"))
	if err != nil {
		return "", err
	}
	defer dst.Close()
	// The server deletes the results of a step when its operation ends. An operation that has not
	// ended in the copy of the database needs them there. They are copied at once, and if the server
	// was faster, the database is copied again. What is missing after that was lost before.
	var needed []string
	for range 10 {
		if err := backupDatabase(ctx, db, next); err != nil {
			return "", err
		}
		if needed, err = sqlstore.UnfinishedObjects(ctx, next); err != nil {
			return "", err
		}
		complete, err := copyBlobs(ctx, dst, src, needed)
		if err != nil {
			return "", err
		}
		if complete {
			break
		}
	}
	if err := os.Rename(next, filepath.Join(to, databaseName)); err != nil {
		return "", err
	}
	// Copy the content last: then every file that the database copy lists exists by now, unless it
	// was deleted in the meantime.
	copied, kept, removed, bytes, err := backupBlobs(ctx, dst, src, needed)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Backed up to %s: %d files copied (%.1f MB), %d unchanged, %d removed.", to, copied, float64(bytes)/1e6, kept, removed), nil
}

// backupDatabase replaces the file next by a copy of the database.
func backupDatabase(ctx context.Context, db *sqlstore.DB, next string) error {
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return db.Backup(ctx, next)
}

// copyBlobs copies objects that dst does not have. It reports whether dst has all of them then.
func copyBlobs(ctx context.Context, dst, src blob.Store, keys []string) (complete bool, err error) {
	complete = true
	for _, key := range keys {
		if o, err := dst.Open(ctx, key); err == nil {
			o.Close()
			continue
		}
		switch err := copyBlob(ctx, dst, src, key); {
		case errors.Is(err, fs.ErrNotExist):
			complete = false
		case err != nil:
			return false, err
		}
	}
	return complete, nil
}

// backupBlobs makes store dst equal to store src. It keeps the objects in needed, which may be gone
// in src. Only the identity object ever changes, so any other existing object needs no copy.
func backupBlobs(ctx context.Context, dst, src blob.Store, needed []string) (copied, kept, removed int, bytes int64, err error) {
	there := map[string]int64{}
	for i, err := range dst.List(ctx, "") {
		if err != nil {
			return 0, 0, 0, 0, err
		}
		there[i.Key] = i.Size
	}
	for i, err := range src.List(ctx, "") {
		if err != nil {
			return copied, kept, removed, bytes, err
		}
		size, ok := there[i.Key]
		if delete(there, i.Key); ok && size == i.Size && i.Key != upload.IdentityKey {
			kept++
			continue
		}
		switch err := copyBlob(ctx, dst, src, i.Key); {
		case errors.Is(err, fs.ErrNotExist): // deleted in the meantime
		case err != nil:
			return copied, kept, removed, bytes, err
		default:
			copied++
			bytes += i.Size
		}
	}
	for _, key := range needed {
		delete(there, key)
	}
	for key := range there {
		if err := dst.Delete(ctx, key); err != nil {
			return copied, kept, removed, bytes, err
		}
		removed++
	}
	return copied, kept, removed, bytes, nil
}

func copyBlob(ctx context.Context, dst, src blob.Store, key string) error {
	o, err := src.Open(ctx, key)
	if err != nil {
		return err
	}
	defer o.Close()
	return dst.Put(ctx, key, blob.NewReader(o), o.Info().Size)
}

// Command client uploads files, runs an action on them and downloads the results.
//
//	API_KEY=fw_… client http://127.0.0.1:8080 convert report.docx convert_to=pdf
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/filewright/filewright/httpapi/client"
)

func main() {
	if len(os.Args) < 4 {
		log.Fatal("usage: API_KEY=… client URL ACTION FILE… [NAME=VALUE…]")
	}
	var files []string
	params := make(map[string]any)
	for _, arg := range os.Args[3:] {
		if name, value, ok := strings.Cut(arg, "="); ok {
			params[name] = value
		} else {
			files = append(files, arg)
		}
	}
	c := &client.Client{BaseURL: os.Args[1], Key: os.Getenv("API_KEY")}
	if err := run(context.Background(), c, os.Args[2], files, params); err != nil {
		log.Fatal(err)
	}
}

// run runs action on files and saves the results in the current directory.
func run(ctx context.Context, c *client.Client, action string, files []string, params map[string]any) error {
	r := client.Request{Action: action, Parameters: params}
	for _, path := range files {
		key, err := c.UploadFile(ctx, path, nil)
		if err != nil {
			return fmt.Errorf("upload %s: %w", path, err)
		}
		r.FileKeys = append(r.FileKeys, key)
	}
	id, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	op, err := c.Wait(ctx, id, nil)
	if err != nil {
		return err
	}
	errs := []error{op.Err()}
	for _, f := range op.Files {
		if f.Status != "completed" {
			continue
		}
		path := filepath.Base(f.Name)
		if err := c.DownloadFile(ctx, f.DownloadLink, path); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Println(path)
	}
	return errors.Join(errs...)
}

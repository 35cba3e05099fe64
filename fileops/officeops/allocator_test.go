package officeops

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
)

// LibreOffice runs with jemalloc only if it starts with it.
func TestFindAllocator(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	library := filepath.Join(dir, "libjemalloc.so.2")
	systest.WriteScript(t, library, "") // the dynamic linker ignores it
	for name, tt := range map[string]struct {
		script, option string
		want           string
		warns          bool
	}{
		"found":    {"#!/bin/sh\necho 7.4.7.2\n", library, library, false},
		"fails":    {"#!/bin/sh\n[ -z \"$LD_PRELOAD\" ]\n", library, "", true},
		"missing":  {"#!/bin/sh\n", filepath.Join(dir, "none.so"), "", false},
		"disabled": {"#!/bin/sh\n", engine.None, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "soffice")
			systest.WriteScript(t, path, tt.script)
			log := new(logtest.Buffer)
			o := Options{Jemalloc: tt.option, Log: slog.New(slog.NewTextHandler(log, nil))}
			if got := findAllocator(t.Context(), o, &engine.Program{Name: "soffice", Path: path}); got != tt.want {
				t.Errorf("allocator %q, want %q", got, tt.want)
			}
			if warned := strings.Contains(log.String(), "does not start with jemalloc"); warned != tt.warns {
				t.Errorf("warned %t, want %t:\n%s", warned, tt.warns, log)
			}
		})
	}
}

// The processes of a pool have the allocator that was found on this host.
func TestAllocator(t *testing.T) {
	t.Parallel()
	p := newPool(&engine.Program{Name: "soffice", Path: "/bin/true", Version: "24.8"}, nil, "/lib/libjemalloc.so.2", Options{Workers: 1, TempDir: t.TempDir()})
	defer p.close()
	if env := strings.Join(p.command(place{}).Env, " "); !strings.Contains(env, "LD_PRELOAD=/lib/libjemalloc.so.2") {
		t.Errorf("the environment is %s", env)
	}
}

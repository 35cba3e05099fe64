package officeops

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
)

func TestFindAllocator(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	library := filepath.Join(dir, "libjemalloc.so.2")
	systest.NoError(t, os.WriteFile(library, nil, 0o600))
	for name, tt := range map[string]struct {
		option, want string
		missing      bool
	}{
		"found":    {library, library, false},
		"missing":  {filepath.Join(dir, "none.so"), "", true},
		"disabled": {engine.None, "", false},
	} {
		if got, missing := findAllocator(Options{Jemalloc: tt.option}); got != tt.want || missing != tt.missing {
			t.Errorf("%s: allocator %q, missing %t, want %q, %t", name, got, missing, tt.want, tt.missing)
		}
	}
}

// LibreOffice runs with jemalloc only if it starts with it.
func TestAllocator(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		works  bool
	}{
		"works": {"#!/bin/sh\n[ -n \"$LD_PRELOAD\" ]\n", true},
		"fails": {"#!/bin/sh\n[ -z \"$LD_PRELOAD\" ]\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, log := t.TempDir(), new(logtest.Buffer)
			library, office := filepath.Join(dir, "libjemalloc.so.2"), filepath.Join(dir, "soffice")
			systest.NoError(t, os.WriteFile(library, nil, 0o600)) // the dynamic linker ignores it
			systest.WriteScript(t, office, tt.script)
			p := newPool(&engine.Program{Name: "soffice", Path: office, Version: "24.8"}, nil, library, Options{Workers: 1, Timeout: time.Minute, TempDir: dir, Log: slog.New(slog.NewTextHandler(log, nil))})
			defer p.close()
			_, err := p.dir()
			systest.NoError(t, err)
			if env := strings.Join(p.command(place{}).Env, " "); strings.Contains(env, preload(library)) != tt.works {
				t.Errorf("the environment is %s", env)
			}
			if warned := strings.Contains(log.String(), "does not start with jemalloc"); warned == tt.works {
				t.Errorf("warned %t:\n%s", warned, log)
			}
		})
	}
}

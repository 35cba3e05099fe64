package main

import (
	"context"
	"errors"
	"io"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/httpapi/mcp"
)

// agents serves the Model Context Protocol on standard input and output.
func agents(c *cli) *cobra.Command {
	var e engineConfig
	var root string
	return c.command(spec{
		use: "mcp", short: "let an agent on this host process files (Model Context Protocol)",
		long: "Speaks the Model Context Protocol on standard input and output, for agents that start\nprograms, such as editors and desktop applications. Its tools convert, compress, merge and\nread files below --root, without a server. Existing files are never replaced.",
		flags: func(fs *flagSet) {
			fs.StringVar(&root, "root", ".", "`directory` that the agent may use; symbolic links that lead out of it are refused")
			e.register(fs)
		},
		run: func(ctx context.Context, _ []string) error { return c.serveAgent(ctx, e, root) },
	})
}

func (c *cli) serveAgent(ctx context.Context, e engineConfig, root string) error {
	if st, err := os.Stat(root); err != nil || !st.IsDir() {
		return usageError{errors.New("--root must be an existing directory")}
	}
	set := probeToWork(ctx, c, e)
	defer set.Close()
	reg, err := fileops.NewRegistry(set.Actions()...)
	if err != nil {
		return err
	}
	server := mcp.NewServer(mcp.Config{
		Backend:  &mcp.Local{Root: root, Registry: reg, MaxOutput: e.output},
		Registry: reg, Version: version(),
		Files: mcp.LocalFiles, Output: mcp.LocalOutput, Resources: mcp.LocalResources,
	})
	err = server.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(c.in), Writer: unclosed{c.out}})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil // the agent has ended
	}
	return err
}

// unclosed is a writer whose Close does nothing.
type unclosed struct{ io.Writer }

// Close implements io.Closer.
func (unclosed) Close() error { return nil }

package mcp_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/httpapi/mcp"
)

// A server on the files of a directory, and a client that calls one of its tools. A program for
// agents passes sdk.StdioTransport to Run instead.
func Example() {
	root, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	if err := os.WriteFile(filepath.Join(root, "note.html"), []byte("hello"), 0o600); err != nil {
		log.Fatal(err)
	}
	reg, err := fileops.NewRegistry(actions()...)
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(mcp.Config{
		Backend: &mcp.Local{Root: root, Registry: reg}, Registry: reg,
		Files: mcp.LocalFiles, Output: mcp.LocalOutput, Resources: mcp.LocalResources,
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	here, there := sdk.NewInMemoryTransports()
	go server.Run(ctx, there)

	session, err := sdk.NewClient(&sdk.Implementation{Name: "example"}, nil).Connect(ctx, here, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "read_document", Arguments: map[string]any{"file": "note.html"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Content[0].(*sdk.TextContent).Text)
	// Output:
	// The whole document (1 section).
	//
	// hello
}

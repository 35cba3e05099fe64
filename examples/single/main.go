// Command single runs one action from Go, without a server: it encrypts a PDF with a password.
//
//	single report.pdf out-directory password
package main

import (
	"context"
	"log"
	"os"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: single FILE.pdf DIRECTORY PASSWORD")
	}
	err := fileops.Run(context.Background(), pdfops.Lock(), fileops.Args{"password": os.Args[3]},
		fileops.ToDir(os.Args[2]), fileops.Path(os.Args[1]))
	if err != nil {
		log.Fatal(fileops.Message(err))
	}
}

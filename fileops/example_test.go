package fileops_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/draw"
	_ "image/jpeg"
	"image/png"
	"io"
	"os"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// grayscale is a custom action: its Spec describes it completely, and Do does the work.
func grayscale() fileops.Action {
	spec := fileops.Spec{
		Name: "grayscale", Engine: "go", Family: "image", Summary: "Removes the colour from an image.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.PNG, format.JPG}}},
	}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		src, _, err := image.Decode(job.Input().Reader())
		if err != nil {
			return fileops.Fail(fileops.ErrCorruptInput, err, "the picture cannot be decoded")
		}
		dst := image.NewGray(src.Bounds())
		draw.Draw(dst, dst.Bounds(), src, src.Bounds().Min, draw.Src)
		return job.Write(fileops.ResultName(job.Input(), format.PNG), func(w io.Writer) error { return png.Encode(w, dst) })
	})
}

func ExampleFunc() {
	var photo bytes.Buffer
	if err := png.Encode(&photo, image.NewRGBA(image.Rect(0, 0, 4, 3))); err != nil {
		fmt.Println(err)
		return
	}
	show := fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		cfg, kind, err := image.DecodeConfig(f.Reader())
		fmt.Println(f.Name(), kind, cfg.Width, cfg.Height, err)
		return nil
	})
	ctx := context.Background()
	fmt.Println(fileops.Run(ctx, grayscale(), nil, show, fileops.Bytes("photo.png", photo.Bytes())))

	err := fileops.Run(ctx, grayscale(), nil, show, fileops.Bytes("photo.jpg", photo.Bytes()))
	fmt.Println(fileops.Code(err), "-", fileops.Message(err))
	// Output:
	// photo.png png 4 3 <nil>
	// <nil>
	// format_mismatch - the file is named .jpg, but its content is PNG (.png)
}

func ExampleRun() {
	shout := fileops.Func(fileops.Spec{
		Name: "shout", Engine: "go", Summary: "Writes a text in capitals.",
		Accepts: []fileops.Accept{{
			Formats: []format.Format{format.TXT},
			Params:  fileops.Schema{{Name: "times", Doc: "How often.", Type: fileops.Integer, Min: 1, Max: 9, Default: 1}},
		}},
	}, func(_ context.Context, job *fileops.Job) error {
		text, err := job.Input().ReadAll(1 << 20)
		if err != nil {
			return err
		}
		return job.WriteBytes("loud.txt", []byte(strings.Repeat(strings.ToUpper(string(text)), job.Params.Int("times"))))
	})
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	err = fileops.Run(context.Background(), shout, fileops.Args{"times": 2}, fileops.ToDir(dir), fileops.Bytes("hi.txt", []byte("hi ")))
	text, _ := os.ReadFile(dir + "/loud.txt")
	fmt.Println(string(text), err)

	err = fileops.Run(context.Background(), shout, fileops.Args{"times": 10}, fileops.ToDir(dir), fileops.Bytes("hi.txt", []byte("hi ")))
	fmt.Println(err)
	// Output:
	// HI HI  <nil>
	// parameter "times" must be from 1 to 9
}

func ExampleChain() {
	step := func(name string, to format.Format, change func(string) string) fileops.Action {
		return fileops.Func(fileops.Spec{
			Name: name, Engine: "go", Summary: "Changes a text.",
			Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT, format.MD}}},
		}, func(_ context.Context, job *fileops.Job) error {
			text, err := job.Input().ReadAll(1 << 20)
			if err != nil {
				return err
			}
			return job.WriteBytes(fileops.ResultName(job.Input(), to), []byte(change(string(text))))
		})
	}
	title := fileops.Chain(
		fileops.Spec{Name: "title", Engine: "go", Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}}},
		fileops.Step{Action: step("upper", format.TXT, strings.ToUpper)},
		fileops.Step{Action: step("head", format.MD, func(s string) string { return "# " + s })},
	)
	show := fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, _ := f.Bytes()
		fmt.Printf("%s: %s\n", f.Name(), b)
		return nil
	})
	fmt.Println(fileops.Run(context.Background(), title, nil, show, fileops.Bytes("a.txt", []byte("hello"))))
	// Output:
	// a.md: # HELLO
	// <nil>
}

func ExampleRegistry_Resolve() {
	reg, err := fileops.NewRegistry(grayscale())
	if err != nil {
		fmt.Println(err)
		return
	}
	a, _, err := reg.Resolve("GRAYSCALE", []format.Format{format.JPG}, nil)
	fmt.Println(a.Spec().Engine, err)
	_, _, err = reg.Resolve("grayscale", []format.Format{format.PDF}, nil)
	fmt.Println(err)
	_, _, err = reg.Resolve("grayscale", []format.Format{format.PNG}, fileops.Args{"level": 3})
	fmt.Println(err)
	// Output:
	// go <nil>
	// the action "grayscale" is not supported for pdf
	// parameter "level" is not known here; this operation takes no parameters
}

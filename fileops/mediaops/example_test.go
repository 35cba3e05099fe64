package mediaops_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/mediaops"
)

func Example() {
	ctx := context.Background()
	engine, err := mediaops.New(ctx, mediaops.Options{})
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	err = fileops.Run(ctx, engine.Convert(), fileops.Args{"convert_to": "mp3", "audio_bitrate": 128},
		fileops.ToDir(dir), fileops.Bytes("beep.wav", beep()))
	if err != nil {
		log.Fatal(err)
	}
	results, _ := os.ReadDir(dir)
	for _, f := range results {
		fmt.Println(f.Name())
	}
	// Output: beep.mp3
}

// beep returns a second of 440 Hz as a WAV file: 8 bit, mono, 8 kHz.
func beep() []byte {
	b := []byte("RIFF\x64\x1f\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data\x40\x1f\x00\x00")
	for i := range 8000 {
		b = append(b, byte(128+100*math.Sin(2*math.Pi*440*float64(i)/8000)))
	}
	return b
}

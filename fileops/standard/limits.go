package standard

import (
	"cmp"
	"time"

	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/fileops/documentops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/imageops"
	"github.com/filewright/filewright/fileops/mediaops"
	"github.com/filewright/filewright/fileops/ocrops"
	"github.com/filewright/filewright/fileops/officeops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/fileops/webops"
)

// Limits restrict the size of a file's content and the resources that the work on it
// takes. Zero fields mean the defaults. A set field applies everywhere: in this process,
// in the processes of [Options.Isolate] and in external programs, even if it is above
// the default. Exceeding a limit fails with [fileops.ErrLimit].
//
// The context limits the duration of a run, and [fileops.Runner] the size of its
// results.
type Limits struct {
	// These are checked against the headers of a file, before it is decoded.

	Pixels   int64         // of a picture, a frame, or a rendered page: width times height; 0 means 100 million
	Frames   int           // of an animation, pages of a TIFF; 0 means 1,000
	Pages    int           // of a PDF, and of all merged PDFs together; 0 means 5,000, for character recognition 500
	Duration time.Duration // of a recording, and of all merged recordings together; 0 means 24 hours
	Entries  int           // of an archive, parts of a document; 0 means 10,000
	Unpacked int64         // bytes of all entries; 0 means 4 GiB for archives, 2 GiB for documents and 1 GiB for those that LibreOffice reads
	Ratio    int64         // uncompressed to compressed size of an entry of more than 10 MiB; 0 means 500
	Cells    int64         // non-empty cells of an OpenDocument workbook; 0 means 10 million

	// These are monitored while an engine works.

	CPU       time.Duration // of one run of a program; 0 means ten times the duration for each thread for recordings, minutes for others
	Memory    int64         // of one run, bytes; 0 means 3 or 4 GiB, depending on the engine; pdfium always has 1 GiB
	Scratch   int64         // intermediate files of one run, bytes; 0 means 20 GiB
	Processes int           // of one run; 0 means 64
	Document  time.Duration // work on one document in LibreOffice, pandoc or Chromium; 0 means 2 minutes
}

// run returns the limits for a program that is started for one file.
func (l Limits) run() engine.Limits {
	return engine.Limits{
		CPU: max(l.CPU, 0), Memory: max(l.Memory, 0),
		Scratch: cmp.Or(max(l.Scratch, 0), 20<<30), Processes: cmp.Or(max(l.Processes, 0), 64),
		Files: 50_000 + 2*max(l.Entries, 10_000) + 2*max(l.Pages, 5000), // no run needs more files of its own
	}
}

// warm returns the limits for a long-running process while it has a document.
func (l Limits) warm() engine.Limits {
	run := l.run()
	run.CPU, run.Memory = 0, 0
	return run
}

// isolated returns the limits for an action in an isolated process.
func (l Limits) isolated() engine.Limits {
	run := l.run()
	// Address space does not measure the memory of a Go program.
	run.Resident, run.Memory = cmp.Or(run.Memory, 3<<30), 0
	run.CPU = cmp.Or(run.CPU, time.Hour)
	return run
}

func (l Limits) images(o imageops.Options) imageops.Options {
	o.MaxPixels, o.MaxFrames, o.Run = l.Pixels, l.Frames, l.run()
	return o
}

func (l Limits) media(o mediaops.Options) mediaops.Options {
	o.MaxPixels, o.MaxDuration, o.Limits = l.Pixels, l.Duration, l.run()
	return o
}

func (l Limits) office(o officeops.Options) officeops.Options {
	o.MemoryLimit, o.Timeout = l.Memory, l.Document
	o.Run = l.warm()
	o.Run.Resident = cmp.Or(max(l.Memory, 0), 4<<30)
	o.Limits = officeops.Limits{Entries: l.Entries, Unpacked: l.Unpacked, Ratio: l.Ratio, Cells: l.Cells}
	return o
}

func (l Limits) render(o pdfread.Options) pdfread.Options {
	o.MaxPixels, o.MaxPages = l.Pixels, l.Pages
	return o
}

func (l Limits) web(o webops.Options) webops.Options {
	o.MemoryLimit, o.Timeout, o.Run = l.Memory, l.Document, l.warm()
	o.Run.Processes = 0 // per browser, which has several documents and several processes for each
	return o
}

func (l Limits) ocr(o ocrops.Options) ocrops.Options {
	o.MaxPixels, o.MaxPages, o.Timeout, o.Limits = l.Pixels, l.Pages, l.CPU, l.run()
	o.Limits.CPU = 0 // per page instead
	return o
}

func (l Limits) pdf(o pdfops.Options) pdfops.Options {
	o.Limits, o.Run = pdfops.Limits{Pages: l.Pages, Pixels: l.Pixels}, l.run()
	return o
}

func (l Limits) archives(o archiveops.Options) archiveops.Options {
	o.Limits, o.Run = archiveops.Limits{Entries: l.Entries, Unpacked: l.Unpacked, Ratio: l.Ratio}, l.run()
	return o
}

func (l Limits) documents() (o documentops.Options) {
	o.Limits = documentops.Limits{Entries: l.Entries, Unpacked: l.Unpacked, Ratio: l.Ratio}
	return o
}

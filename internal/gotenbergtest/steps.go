package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/png"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A stepFunc runs a step whose text matched. m are the submatches.
type stepFunc func(w *world, m []string, s stepText) error

// steps lists the steps.
var steps = []struct {
	re *regexp.Regexp
	do stepFunc
}{
	{regexp.MustCompile(`^I have a (?:webhook|static) server$`), func(*world, []string, stepText) error { return nil }},
	{regexp.MustCompile(`^I have a .*Gotenberg container`), func(*world, []string, stepText) error { return nil }},
	{regexp.MustCompile(`^the Gotenberg container (?:should|should NOT) log the following entries:$`), func(*world, []string, stepText) error { return nil }},
	{regexp.MustCompile(`^I make a "(GET|HEAD)" request to Gotenberg at the "([^"]*)" endpoint(?: with the following header\(s\):)?$`), func(w *world, m []string, s stepText) error {
		header := make(http.Header)
		for _, row := range s.table {
			header.Set(row[0], row[1])
		}
		r, err := w.send(m[1], m[2], nil, "", header)
		w.response = r
		return err
	}},
	{regexp.MustCompile(`^I make a "POST" request to Gotenberg at the "([^"]*)" endpoint with the following form data and header\(s\):$`), func(w *world, m []string, s stepText) error {
		return w.post(m[1], s.table)
	}},
	{regexp.MustCompile(`^I make (\d+) concurrent "POST" requests to Gotenberg at the "([^"]*)" endpoint with the following form data and header\(s\):$`), func(w *world, m []string, s stepText) error {
		n, _ := strconv.Atoi(m[1])
		return w.several(n, m[2], s.table)
	}},
	{regexp.MustCompile(`^I wait for the asynchronous request to the webhook$`), func(w *world, _ []string, _ stepText) error {
		select {
		case <-w.receiver.got:
			w.receiver.mu.Lock()
			defer w.receiver.mu.Unlock()
			return w.receiver.err
		case <-time.After(2 * time.Minute):
			return errors.New("no request arrived")
		}
	}},
	{regexp.MustCompile(`^the response status code should be (\d+)$`), func(w *world, m []string, _ stepText) error {
		if strconv.Itoa(w.status) != m[1] {
			return fmt.Errorf("status %d %.300q, want %s", w.status, w.body, m[1])
		}
		return nil
	}},
	{regexp.MustCompile(`^all concurrent response status codes should be (\d+)$`), func(w *world, m []string, _ stepText) error {
		for _, t := range w.trials {
			if strconv.Itoa(t.status) != m[1] {
				return fmt.Errorf("status %d", t.status)
			}
		}
		return nil
	}},
	{regexp.MustCompile(`^all concurrent responses should have (\d+) PDF\(s\)$`), func(w *world, m []string, _ stepText) error {
		for _, t := range w.trials {
			if strconv.Itoa(t.pdfs) != m[1] {
				return fmt.Errorf("%d PDF files", t.pdfs)
			}
		}
		return nil
	}},
	{regexp.MustCompile(`^the (response|webhook request|file request|server request) header "([^"]*)" should be "([^"]*)"$`), func(w *world, m []string, _ stepText) error {
		h := w.header
		if m[1] != "response" {
			w.receiver.mu.Lock()
			defer w.receiver.mu.Unlock()
			h = w.receiver.header
		}
		if got := h.Get(m[2]); got != m[3] {
			return fmt.Errorf("header %s is %q, want %q; the response is %d %.200q", m[2], got, m[3], w.status, w.body)
		}
		return nil
	}},
	{regexp.MustCompile(`^the webhook request header "([^"]*)" should carry trace id "([^"]*)"$`), func(w *world, m []string, _ stepText) error {
		w.receiver.mu.Lock()
		defer w.receiver.mu.Unlock()
		if parts := strings.Split(w.receiver.header.Get(m[1]), "-"); len(parts) != 4 || parts[1] != m[2] {
			return fmt.Errorf("header %s is %q", m[1], parts)
		}
		return nil
	}},
	{regexp.MustCompile(`^the server request cookie "([^"]*)" should be "([^"]*)"$`), func(w *world, m []string, _ stepText) error {
		w.receiver.mu.Lock()
		defer w.receiver.mu.Unlock()
		for _, c := range w.receiver.cookie {
			if c.Name == m[1] && c.Value == m[2] {
				return nil
			}
		}
		if m[2] == "" {
			return nil
		}
		return fmt.Errorf("cookies %v; the response is %d %.200q", w.receiver.cookie, w.status, w.body)
	}},
	{regexp.MustCompile(`^the (response|webhook request) body should (match string|contain string|match JSON):$`), func(w *world, m []string, s stepText) error {
		body := w.body
		if m[1] != "response" {
			w.receiver.mu.Lock()
			defer w.receiver.mu.Unlock()
			body = w.receiver.body
		}
		want := strings.ReplaceAll(s.doc, "{version}", w.version)
		switch {
		case m[2] == "match JSON":
			return compareText(want, body)
		case m[2] == "match string" && string(body) != want, !bytes.Contains(body, []byte(want)):
			return fmt.Errorf("body %q, want %q", body, want)
		}
		return nil
	}},
	{regexp.MustCompile(`^the webhook event should match JSON:$`), func(w *world, _ []string, s stepText) error {
		for range 50 {
			w.receiver.mu.Lock()
			event := w.receiver.event
			w.receiver.mu.Unlock()
			if event != nil {
				return compareText(s.doc, event)
			}
			time.Sleep(100 * time.Millisecond)
		}
		return errors.New("no event arrived")
	}},
	{regexp.MustCompile(`^there should be (\d+) PDF\(s\) in the (?:response|webhook request)$`), func(w *world, m []string, _ stepText) error {
		all, err := w.pdfs()
		if err == nil && strconv.Itoa(len(all)) != m[1] {
			err = fmt.Errorf("%q, want %s PDF files", names(w.store), m[1])
		}
		return err
	}},
	{regexp.MustCompile(`^there should be the following file\(s\) in the (?:response|webhook request):$`), func(w *world, _ []string, s stepText) error {
		for _, row := range s.table {
			if _, err := w.file(row[0]); err != nil {
				return err
			}
		}
		return nil
	}},
	{regexp.MustCompile(`^the (?:response|webhook request) PDF\(s\) should be valid "PDF/(A-\db|UA-\d)" with a tolerance of (\d+) failed rule\(s\)$`), func(w *world, m []string, _ stepText) error {
		return w.eachPDF(func(path string) error { return valid(path, m[1], m[2]) })
	}},
	{regexp.MustCompile(`^the (?:response|webhook request) PDF\(s\) should be flatten$`), func(w *world, _ []string, _ stepText) error {
		return w.eachPDF(func(path string) error {
			out, err := tool("qpdf", "--qdf", "--object-streams=disable", path, "-")
			if err == nil && strings.Contains(out, "/Subtype /Widget") {
				err = errors.New("the file has form fields")
			}
			return err
		})
	}},
	{regexp.MustCompile(`^the (?:response|webhook request) PDF\(s\) (should|should NOT) be encrypted`), func(w *world, m []string, _ stepText) error {
		return w.eachPDF(func(path string) error {
			out, _ := tool("pdfinfo", path) // fails if the file is encrypted
			if locked := strings.Contains(out, "Incorrect password"); locked != (m[1] == "should") {
				return fmt.Errorf("%s: needs a password: %v", path, locked)
			}
			return nil
		})
	}},
	{regexp.MustCompile(`^the (?:response|webhook request) PDF\(s\) should NOT allow "printing"$`), func(w *world, _ []string, _ stepText) error {
		return w.eachPDF(func(path string) error {
			out, err := tool("pdfinfo", path)
			if err == nil && !strings.Contains(out, "print:no") {
				err = fmt.Errorf("printing is allowed: %s", out)
			}
			return err
		})
	}},
	{regexp.MustCompile(`^the (?:response|webhook request) PDF\(s\) (should|should NOT) have the "([^"]*)" file embedded$`), func(w *world, m []string, _ stepText) error {
		return w.eachPDF(func(path string) error {
			out, err := tool("pdfdetach", "-list", path)
			if err == nil && strings.Contains(out, m[2]) != (m[1] == "should") {
				err = fmt.Errorf("attachments: %s", out)
			}
			return err
		})
	}},
	{regexp.MustCompile(`^the (?:response|webhook request) PDF\(s\) should have the "([^"]*)" file embedded with relationship "([^"]*)"$`), func(w *world, m []string, _ stepText) error {
		return w.eachPDF(func(path string) error {
			out, err := tool("qpdf", "--qdf", "--object-streams=disable", path, "-")
			if err != nil {
				return err
			}
			for object := range strings.SplitSeq(out, "endobj") {
				if strings.Contains(object, "("+m[1]+")") && strings.Contains(object, "/AFRelationship /"+m[2]) {
					return nil
				}
			}
			return errors.New("no such relationship")
		})
	}},
	{regexp.MustCompile(`^the response PDF\(s\) should declare Factur-X XMP with conformance level "([^"]*)"$`), func(w *world, m []string, _ stepText) error {
		return w.eachPDF(func(path string) error {
			out, err := tool("pdfinfo", "-meta", path)
			if err == nil && !strings.Contains(out, "<fx:ConformanceLevel>"+m[1]+"</fx:ConformanceLevel>") {
				err = errors.New("no such level")
			}
			return err
		})
	}},
	{regexp.MustCompile(`^the "([^"]*)" PDF should have (\d+) page\(s\)$`), func(w *world, m []string, _ stepText) error {
		return w.info(m[1], regexp.MustCompile(`Pages: +(\d+)`), func(v []string) error {
			if v[1] != m[2] {
				return fmt.Errorf("%s pages, want %s", v[1], m[2])
			}
			return nil
		})
	}},
	{regexp.MustCompile(`^the "([^"]*)" PDF (should|should NOT) be set to landscape orientation$`), func(w *world, m []string, _ stepText) error {
		return w.info(m[1], regexp.MustCompile(`Page size: +([\d.]+) x ([\d.]+)`), func(v []string) error {
			width, _ := strconv.ParseFloat(v[1], 64)
			height, _ := strconv.ParseFloat(v[2], 64)
			if (width > height) != (m[2] == "should") {
				return fmt.Errorf("%v × %v", width, height)
			}
			return nil
		})
	}},
	{regexp.MustCompile(`^the "([^"]*)" PDF (should|should NOT) have a document outline$`), func(w *world, m []string, _ stepText) error {
		path, err := w.file(m[1])
		if err != nil {
			return err
		}
		out, err := tool("qpdf", "--json", "--json-key=outlines", path)
		if has := strings.Contains(out, `"title"`); err == nil && has != (m[2] == "should") {
			err = fmt.Errorf("bookmarks: %v", has)
		}
		return err
	}},
	{regexp.MustCompile(`^the "([^"]*)" PDF (should|should NOT) have the following content at page (\d+):$`), func(w *world, m []string, s stepText) error {
		return w.text(m[1], m[3], func(text string) error {
			if strings.Contains(text, s.doc) != (m[2] == "should") {
				return fmt.Errorf("%s have %q: %q", m[2], s.doc, text)
			}
			return nil
		})
	}},
	{regexp.MustCompile(`^the "([^"]*)" PDF (should|should NOT) have content matching "([^"]*)" at page (\d+)$`), func(w *world, m []string, _ stepText) error {
		re, err := regexp.Compile(m[3])
		if err != nil {
			return err
		}
		return w.text(m[1], m[4], func(text string) error {
			if re.MatchString(text) != (m[2] == "should") {
				return fmt.Errorf("%s match %q: %q", m[2], m[3], text)
			}
			return nil
		})
	}},
	{regexp.MustCompile(`^the "([^"]*)" PDF should have (\d+) image\(s\)$`), func(w *world, m []string, _ stepText) error {
		path, err := w.file(m[1])
		if err != nil {
			return err
		}
		out, err := tool("pdfimages", "-list", path)
		if n := max(0, len(strings.Split(strings.TrimSpace(out), "\n"))-2); err == nil && strconv.Itoa(n) != m[2] {
			err = fmt.Errorf("%d images, want %s", n, m[2])
		}
		return err
	}},
	{regexp.MustCompile(`^the "([^"]*)" image should be (\d+)x(\d+) pixels$`), func(w *world, m []string, _ stepText) error {
		img, err := w.image(m[1])
		if err != nil {
			return err
		}
		if b := img.Bounds(); strconv.Itoa(b.Dx()) != m[2] || strconv.Itoa(b.Dy()) != m[3] {
			err = fmt.Errorf("%v, want %s × %s", b, m[2], m[3])
		}
		return err
	}},
	{regexp.MustCompile(`^the "([^"]*)" image pixel at (\d+),(\d+) should be "([^"]*)"$`), func(w *world, m []string, _ stepText) error {
		img, err := w.image(m[1])
		if err != nil {
			return err
		}
		x, _ := strconv.Atoi(m[2])
		y, _ := strconv.Atoi(m[3])
		r, g, b, _ := img.At(x, y).RGBA()
		if got := fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8); got != m[4] {
			err = fmt.Errorf("%s, want %s", got, m[4])
		}
		return err
	}},
	{regexp.MustCompile(`^the "([^"]*)" file size should be (less|greater) than (\d+) KB$`), func(w *world, m []string, _ stepText) error {
		path, err := w.file(m[1])
		if err != nil {
			return err
		}
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		kb, _ := strconv.ParseInt(m[3], 10, 64)
		if (st.Size() < kb<<10) != (m[2] == "less") {
			return fmt.Errorf("%d bytes, want %s than %d KB", st.Size(), m[2], kb)
		}
		return nil
	}},
}

// run runs a step.
func (w *world) run(s stepText) error {
	for _, one := range steps {
		if m := one.re.FindStringSubmatch(s.text); m != nil {
			return one.do(w, m, s)
		}
	}
	return errors.New("unknown step")
}

func (w *world) eachPDF(check func(path string) error) error {
	all, err := w.pdfs()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("no PDF files in %q; the response is %d %.200q", names(w.store), w.status, w.body)
	}
	for _, path := range all {
		if err := check(path); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
	return nil
}

// info passes the part of the output of pdfinfo that matches re to check.
func (w *world) info(name string, re *regexp.Regexp, check func([]string) error) error {
	path, err := w.file(name)
	if err != nil {
		return err
	}
	out, err := tool("pdfinfo", path)
	if err != nil {
		return err
	}
	m := re.FindStringSubmatch(out)
	if m == nil {
		return fmt.Errorf("pdfinfo: %s", out)
	}
	return check(m)
}

func (w *world) text(name, page string, check func(string) error) error {
	path, err := w.file(name)
	if err != nil {
		return err
	}
	out, err := tool("pdftotext", "-f", page, "-l", page, path, "-")
	if err != nil {
		return err
	}
	return check(out)
}

func (w *world) image(name string) (image.Image, error) {
	path, err := w.file(name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	img, _, err := image.Decode(f)
	return img, err
}

// errUnchecked is the error of a check that this host cannot make.
var errUnchecked = errors.New("veraPDF is not here")

// failedRules matches the number of failed rules in a report of veraPDF.
var failedRules = regexp.MustCompile(`failedRules="(\d+)"`)

// valid checks a file with veraPDF. Without it, it only looks for the claim to conform.
func valid(path, standard, tolerance string) error {
	if _, err := exec.LookPath("verapdf"); err == nil {
		flavour := strings.ToLower(strings.NewReplacer("A-", "", "UA-", "ua").Replace(standard))
		out, _ := tool("verapdf", "-f", flavour, path) // fails if the file does not conform
		m := failedRules.FindStringSubmatch(out)
		if m == nil {
			return fmt.Errorf("verapdf: %.300s", out)
		}
		failed, _ := strconv.Atoi(m[1])
		most, _ := strconv.Atoi(tolerance)
		if failed > most {
			return fmt.Errorf("%d rules of PDF/%s failed, the tolerance is %s", failed, standard, tolerance)
		}
		return nil
	}
	out, err := tool("pdfinfo", "-meta", path)
	if err != nil {
		return err
	}
	mark := "pdfuaid:part"
	if strings.HasPrefix(standard, "A") {
		mark = "pdfaid:part>" + standard[2:3]
		out = strings.ReplaceAll(out, `pdfaid:part="`, "pdfaid:part>")
	}
	if !strings.Contains(out, mark) {
		return fmt.Errorf("the file does not claim to conform to PDF/%s", standard)
	}
	return errUnchecked
}

// tool runs a program and returns what it writes.
func tool(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %.300s", name, err, out)
	}
	return string(out), err
}

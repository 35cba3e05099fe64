package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A scenario is a scenario of a feature file.
type scenario struct {
	file  string // name of the feature file
	line  int
	name  string
	steps []stepText
}

// A stepText is a step with its argument.
type stepText struct {
	text  string
	table [][]string
	doc   string
}

// readFeature reads the part of Gherkin that the scenarios use: features without a background, scenarios
// with tables and texts as arguments, tags and comments.
func readFeature(path string) (all []scenario, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	var doc []string
	inDoc, indent := false, 0
	for n := 1; lines.Scan(); n++ {
		raw := lines.Text()
		text := strings.TrimSpace(raw)
		if inDoc {
			if text == `"""` {
				inDoc = false
				s := all[len(all)-1].steps
				s[len(s)-1].doc = strings.Join(doc, "\n")
				continue
			}
			trim := 0
			for trim < indent && trim < len(raw) && raw[trim] == ' ' {
				trim++
			}
			doc = append(doc, strings.ReplaceAll(raw[trim:], `\"`, `"`))
			continue
		}
		switch {
		case text == "" || text[0] == '#' || text[0] == '@' || strings.HasPrefix(text, "Feature:"):
		case strings.HasPrefix(text, "Scenario:"):
			all = append(all, scenario{file: filepath.Base(path), line: n, name: strings.TrimSpace(strings.TrimPrefix(text, "Scenario:"))})
		case len(all) == 0:
			return nil, fmt.Errorf("%s:%d: %q before the first scenario", path, n, text)
		case text == `"""`:
			inDoc, indent, doc = true, strings.Index(raw, `"`), nil
		case text[0] == '|':
			s := all[len(all)-1].steps
			last := &s[len(s)-1]
			last.table = append(last.table, cells(text))
		default:
			word, rest, _ := strings.Cut(text, " ")
			switch word {
			case "Given", "When", "Then", "And", "But":
			default:
				return nil, fmt.Errorf("%s:%d: unknown line %q", path, n, text)
			}
			s := &all[len(all)-1]
			s.steps = append(s.steps, stepText{text: rest})
		}
	}
	return all, lines.Err()
}

// cells returns the cells of a row of a table. A backslash escapes a bar, a backslash, or n for a line
// break.
func cells(row string) (out []string) {
	var b strings.Builder
	for i := 1; i < len(row); i++ {
		switch c := row[i]; {
		case c == '\\' && i+1 < len(row):
			i++
			switch row[i] {
			case 'n':
				b.WriteByte('\n')
			case '|', '\\':
				b.WriteByte(row[i])
			default:
				b.WriteString(row[i-1 : i+1])
			}
		case c == '|':
			out = append(out, strings.TrimSpace(b.String()))
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}
	return out
}

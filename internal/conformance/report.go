package conformance

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
)

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteJUnit writes the report in the XML format of JUnit, which continuous integration systems read.
func (r *Report) WriteJUnit(w io.Writer) error {
	type message struct {
		Text string `xml:"message,attr"`
	}
	type testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Time    string   `xml:"time,attr"`
		Failure *message `xml:"failure"`
		Skipped *message `xml:"skipped"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     string     `xml:"timestamp,attr"`
		Cases    []testcase `xml:"testcase"`
	}{Name: r.BaseURL, Tests: len(r.Results), Failures: r.Count(Failed), Skipped: r.Count(Skipped), Time: r.Started.Format("2006-01-02T15:04:05")}
	for _, res := range r.Results {
		c := testcase{Class: string(res.Level), Name: res.Rule + ": " + res.Text, Time: fmt.Sprintf("%.3f", res.Seconds)}
		switch res.Outcome {
		case Failed:
			c.Failure = &message{res.Detail}
		case Skipped:
			c.Skipped = &message{res.Detail}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

package webops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/filewright/filewright/fileops"
)

const (
	screen = "screen"

	waitTick = 50 * time.Millisecond // between two looks at a condition

	maxErrorTexts = 3 // messages of errors that a warning has
)

// scriptParameters returns the parameters of a web page that concern its scripts and
// style. They say how the page is read, so conversions in two steps have them too.
func scriptParameters() fileops.Schema {
	all := fileops.Schema{
		{Name: "media", Doc: "Style of the page: print, or what a screen shows.", Enum: []string{"print", screen}, Default: "print"},
		{Name: "media_features", Type: fileops.Object, Min: 1, Max: 20, Doc: `Values of media features that the style may query, such as {"prefers-color-scheme": "dark"}.`},
		{Name: "javascript", Type: fileops.Boolean, Default: false, Doc: "Whether the scripts in the page run before it is printed. They have no network and a limited time."},
		{Name: "wait_for_selector", Min: 1, Max: 1000, Doc: "CSS selector of an element; the page is printed when its scripts have made it. Needs javascript."},
		{Name: "wait_for_expression", Min: 1, Max: 4000, Doc: "JavaScript expression; the page is printed when it is true. Needs javascript."},
		{Name: "wait_delay", Type: fileops.Number, Min: 0, Max: 60, Doc: "Seconds between loading and printing the page. Needs javascript."},
	}
	for i := range all {
		all[i].Scope = fileops.ScopeInput
	}
	return all
}

// A feature is a media feature and its value (Media Queries Level 5).
type feature struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// mediaFeatures reads the parameter media_features.
func mediaFeatures(p fileops.Params) (list []feature, err error) {
	const longest = 100
	given := p.Object("media_features")
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value, ok := given[name].(string)
		if !ok || len(name) > longest || len(value) > longest {
			return nil, &fileops.ParamError{Param: "media_features", Reason: fmt.Sprintf("has %.100q, whose value is not a short string", name)}
		}
		list = append(list, feature{name, value})
	}
	return list, nil
}

// scripting says how the scripts of a page run and what the printer waits for.
type scripting struct {
	selector, expression string
	delay, limit         time.Duration
	warn                 func(failed int, texts []string) // texts are the first maxErrorTexts messages
}

// newScripts returns nil if the parameters keep scripts off.
func newScripts(job *fileops.Job, limit time.Duration) (*scripting, error) {
	p := job.Params
	if !p.Bool("javascript") {
		for _, name := range []string{"wait_for_selector", "wait_for_expression", "wait_delay"} {
			if p.Has(name) {
				return nil, &fileops.ParamError{Param: name, Reason: "needs the parameter javascript"}
			}
		}
		return nil, nil
	}
	sc := &scripting{
		selector: p.Get("wait_for_selector"), expression: p.Get("wait_for_expression"),
		delay: time.Duration(p.Float("wait_delay") * float64(time.Second)), limit: limit,
	}
	if sc.delay >= limit {
		return nil, &fileops.ParamError{Param: "wait_delay", Reason: "must be less than the time limit of scripts, " + limit.String()}
	}
	sc.warn = func(failed int, texts []string) {
		switch {
		case failed == 1:
			job.Warn(fileops.WarnScriptFailed, "A script of the page failed: %s", texts[0])
		case failed > len(texts):
			job.Warn(fileops.WarnScriptFailed, "Scripts of the page failed %d times, first: %s", failed, strings.Join(texts, " "))
		case failed > 1:
			job.Warn(fileops.WarnScriptFailed, "Scripts of the page failed %d times: %s", failed, strings.Join(texts, " "))
		}
	}
	return sc, nil
}

// late returns the error for scripts that exceed the time limit.
func (sc *scripting) late() error {
	switch {
	case sc.selector != "":
		return fileops.Fail(fileops.ErrLimit, nil, "the page had no element for wait_for_selector within the limit of %v", sc.limit)
	case sc.expression != "":
		return fileops.Fail(fileops.ErrLimit, nil, "wait_for_expression did not become true within the limit of %v", sc.limit)
	}
	return fileops.Fail(fileops.ErrLimit, nil, "the scripts of the page took longer than the limit of %v", sc.limit)
}

// settle waits for the conditions of sc, until ctx is done.
func (s *session) settle(ctx context.Context, sc *scripting) error {
	if sc.selector != "" {
		selector, err := json.Marshal(sc.selector)
		if err != nil {
			return err
		}
		if err := s.until(ctx, "wait_for_selector", `document.querySelector(`+string(selector)+`) !== null`, true); err != nil {
			return err
		}
	}
	if sc.expression != "" {
		if err := s.until(ctx, "wait_for_expression", sc.expression, false); err != nil {
			return err
		}
	}
	select {
	case <-time.After(sc.delay):
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.conn.done:
		return errGone
	}
	// What is due now runs first, such as the timers that scripts set while they loaded.
	return s.evaluate(ctx, `new Promise(done => setTimeout(() => setTimeout(done)))`, true, nil)
}

// until evaluates an expression, the value of a parameter, until it is true.
func (s *session) until(ctx context.Context, param, expression string, own bool) error {
	tick := time.NewTicker(waitTick)
	defer tick.Stop()
	for {
		var result evaluation
		if err := s.evaluate(ctx, expression, own, &result); err != nil {
			return err
		}
		if e := result.ExceptionDetails; e != nil && (own || strings.HasPrefix(e.Exception.Description, "SyntaxError")) {
			return &fileops.ParamError{Param: param, Reason: "is not valid: " + oneLine(e.Exception.Description)}
		}
		if result.ExceptionDetails == nil && truthy(result) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.conn.done:
			return errGone
		}
	}
}

// An evaluation is the result of Runtime.evaluate.
type evaluation struct {
	Result struct {
		Type    string          `json:"type"`
		Subtype string          `json:"subtype"`
		Value   json.RawMessage `json:"value"`
	} `json:"result"`
	ExceptionDetails *exception `json:"exceptionDetails"`
}

// An exception describes an uncaught error of a script.
type exception struct {
	Text      string `json:"text"`
	Exception struct {
		Description string          `json:"description"`
		Value       json.RawMessage `json:"value"`
	} `json:"exception"`
}

// truthy reports whether JavaScript treats a value as true (ECMA-262, 7.1.2).
func truthy(e evaluation) bool {
	switch r := e.Result; r.Type {
	case "undefined":
		return false
	case "object":
		return r.Subtype != "null"
	case "boolean", "number", "string":
		v := string(r.Value)
		return v != "" && v != "false" && v != "0" && v != `""`
	}
	return true
}

// evaluate evaluates an expression and waits for its promise. own evaluates it where the
// page cannot interfere.
func (s *session) evaluate(ctx context.Context, expression string, own bool, result *evaluation) error {
	call := params{"expression": expression, "awaitPromise": true, "silent": true}
	if own {
		var err error
		if call["contextId"], err = s.ownWorld(ctx); err != nil {
			return err
		}
	}
	var any evaluation
	if result == nil {
		result = &any
	}
	err := s.call(ctx, "Runtime.evaluate", call, result)
	var refused *protocolError
	if errors.As(err, &refused) && ctx.Err() == nil {
		return elsewhere(err)
	}
	return err
}

// ownWorld returns the id of a JavaScript context that shares only the document with the
// page.
func (s *session) ownWorld(ctx context.Context) (int, error) {
	var world struct {
		ID int `json:"executionContextId"`
	}
	err := s.call(ctx, "Page.createIsolatedWorld", params{"frameId": s.frame, "worldName": "filewright"}, &world)
	return world.ID, err
}

// noteError counts an uncaught error of the page's scripts.
func (s *session) noteError(event json.RawMessage) {
	var e struct {
		Details exception `json:"exceptionDetails"`
	}
	if json.Unmarshal(event, &e) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.errors++; s.errors > maxErrorTexts {
		return
	}
	text := e.Details.Text
	switch d := e.Details; {
	case d.Exception.Description != "":
		text = d.Exception.Description
	case len(d.Exception.Value) > 0:
		text = string(d.Exception.Value)
	}
	s.texts = append(s.texts, oneLine(text))
}

// oneLine returns the start of the first line of a text of a page, as a sentence.
func oneLine(text string) string {
	const most = 160
	text, _, _ = strings.Cut(text, "\n")
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strings.TrimRight(text, ". ") + "."
}

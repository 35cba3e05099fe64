package fileops

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// A Warning reports something that a successful run lost, replaced or guessed.
type Warning struct {
	Code    string `json:"code"`    // stable, for programs: one of the Warn constants, or the name of an action's own
	Message string `json:"message"` // for users: what was lost; no path, no engine output
}

// Codes of warnings. [WarningMeanings] explains them.
const (
	WarnAnimationDropped     = "animation_dropped"
	WarnPagesDropped         = "pages_dropped"
	WarnHDRDropped           = "hdr_dropped"
	WarnColorConverted       = "color_converted"
	WarnTransparencyDropped  = "transparency_dropped"
	WarnMetadataDropped      = "metadata_dropped"
	WarnFontsSubstituted     = "fonts_substituted"
	WarnTextRecognized       = "text_recognized"
	WarnTextUnreliable       = "text_unreliable"
	WarnLayoutSimplified     = "layout_simplified"
	WarnPageAsImage          = "page_as_image"
	WarnLinksDropped         = "links_dropped"
	WarnFormulasRecalculated = "formulas_recalculated"
	WarnEncodingGuessed      = "encoding_guessed"
	WarnStreamsDropped       = "streams_dropped"
	WarnScriptNotRun         = "script_not_run"
	WarnScriptFailed         = "script_failed"
	WarnContentDropped       = "content_dropped"
	WarnProtectionRemoved    = "protection_removed"
	WarnSignatureInvalid     = "signature_invalid"
	WarnResolutionReduced    = "resolution_reduced"
	WarnRecompressed         = "recompressed"
	WarnMacrosDropped        = "macros_dropped"
	WarnPasswordUnused       = "password_unused"
	WarnInvoiceUnverified    = "invoice_unverified"
)

// WarningMeanings yields the codes of warnings with a sentence each, for documentation.
func WarningMeanings() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, m := range [][2]string{
			{WarnAnimationDropped, "Only one frame of an animation was kept."},
			{WarnPagesDropped, "The result lacks pages of the input."},
			{WarnHDRDropped, "High dynamic range became standard dynamic range."},
			{WarnColorConverted, "Colours were converted to another colour space."},
			{WarnTransparencyDropped, "Transparent areas became opaque."},
			{WarnMetadataDropped, "Metadata, such as tags or a cover, was left out."},
			{WarnFontsSubstituted, "Fonts that the file does not contain were replaced."},
			{WarnTextRecognized, "Text was recognised from pictures (OCR)."},
			{WarnTextUnreliable, "Text may be wrong."},
			{WarnLayoutSimplified, "The layout differs from that of the input."},
			{WarnPageAsImage, "A page became a picture."},
			{WarnLinksDropped, "Links were left out."},
			{WarnFormulasRecalculated, "Formulas were calculated again."},
			{WarnEncodingGuessed, "The character encoding was guessed."},
			{WarnStreamsDropped, "Audio, video or subtitle tracks were left out."},
			{WarnScriptNotRun, "Scripts were not run."},
			{WarnScriptFailed, "A script of a page failed."},
			{WarnContentDropped, "Other content of the input was left out."},
			{WarnProtectionRemoved, "The result is less protected than the input."},
			{WarnSignatureInvalid, "A digital signature no longer matches the content."},
			{WarnResolutionReduced, "A picture has fewer pixels, to fit into a number of bytes."},
			{WarnRecompressed, "A picture was compressed again, with small losses."},
			{WarnMacrosDropped, "Macros were left out. They never run here."},
			{WarnPasswordUnused, "The file opens without a password, so the given one was ignored."},
			{WarnInvoiceUnverified, "An attached file is not the invoice that the PDF file claims to have."},
		} {
			if !yield(m[0], m[1]) {
				return
			}
		}
	}
}

const (
	maxWarnings       = 20  // of one run
	maxWarningMessage = 300 // bytes
)

// Warn records a [Warning] about the results. The message is a sentence, formatted like
// that of [fmt.Sprintf]. Equal warnings are recorded once, and at most 20 of a run. If the
// run fails, its warnings are dropped.
func (j *Job) Warn(code, message string, args ...any) {
	w := Warning{code, fmt.Sprintf(message, args...)}
	w.Message = strings.ToValidUTF8(w.Message[:min(len(w.Message), maxWarningMessage)], "")
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.warnings) < maxWarnings && !slices.Contains(j.warnings, w) {
		j.warnings = append(j.warnings, w)
	}
}

// WarnPasswordUnused warns with [WarnPasswordUnused] if the run has the parameter password.
// Actions call it when they find that no input is protected.
func (j *Job) WarnPasswordUnused() {
	if j.Params.Has("password") {
		j.Warn(WarnPasswordUnused, "The password was ignored, because nothing in the input is protected by one.")
	}
}

// Runner returns a Runner for a run that is part of j. Its progress is the part of j's
// from start to end, and its warnings become those of j.
func (j *Job) Runner(start, end float64) (*Runner, error) {
	dir, err := j.Dir()
	if err != nil {
		return nil, err
	}
	return &Runner{
		TempDir: dir, Log: j.Log, MaxOutput: j.MaxOutput(), Owner: j.owner,
		Progress: func(done float64) { j.Progress(start + done*(end-start)) },
		Warn:     func(w Warning) { j.Warn(w.Code, "%s", w.Message) },
	}, nil
}

package dashboard

import (
	"fmt"
	"html/template"
)

// icons are line drawings with a view box of 24 by 24.
var icons = map[string]string{
	"home":     `<path d="M4 11 12 4l8 7v8a1 1 0 0 1-1 1h-4.500v-6h-5v6H5a1 1 0 0 1-1-1z"/>`,
	"try":      `<path d="M13 3 5 13.500h6L10 21l8-10.500h-6z"/>`,
	"list":     `<path d="M9 6h11M9 12h11M9 18h11M4.500 6h.01M4.500 12h.01M4.500 18h.01"/>`,
	"key":      `<circle cx="8" cy="15.500" r="4"/><path d="m11 12.500 8.500-8.500M16 7.500l3 3M13.500 10l2 2"/>`,
	"hook":     `<path d="M9.500 8.500a3.500 3.500 0 1 1 5 3.200l2.700 4.800M12 8.500l-3.200 6a3.500 3.500 0 1 1-5-1.800M12 17.500h5.200a3.500 3.500 0 1 1-.2 1.200"/>`,
	"chart":    `<path d="M4 20h16M7 16v-4M12 16V6M17 16v-7"/>`,
	"grid":     `<rect x="4" y="4" width="6.500" height="6.500" rx="1.500"/><rect x="13.500" y="4" width="6.500" height="6.500" rx="1.500"/><rect x="4" y="13.500" width="6.500" height="6.500" rx="1.500"/><rect x="13.500" y="13.500" width="6.500" height="6.500" rx="1.500"/>`,
	"users":    `<circle cx="9" cy="8" r="3.500"/><path d="M2.500 20a6.500 6.500 0 0 1 13 0M16 4.800a3.500 3.500 0 0 1 0 6.400M18.500 14.500a6.500 6.500 0 0 1 3 5.500"/>`,
	"settings": `<path d="M4 7h9M19 7h1M4 17h1M11 17h9"/><circle cx="16" cy="7" r="2.500"/><circle cx="8" cy="17" r="2.500"/>`,
	"logout":   `<path d="M14 4H6a1 1 0 0 0-1 1v14a1 1 0 0 0 1 1h8M10.500 12H20m-3.500-4 4 4-4 4"/>`,
	"sun":      `<circle cx="12" cy="12" r="4"/><path d="M12 3v1.500M12 19.500V21M3 12h1.500M19.500 12H21M5.600 5.600l1.100 1.100M17.300 17.300l1.100 1.100M5.600 18.400l1.100-1.100M17.300 6.700l1.100-1.100"/>`,
	"moon":     `<path d="M20 14.500A8.500 8.500 0 0 1 9.500 4 8.500 8.500 0 1 0 20 14.500z"/>`,
	"auto":     `<circle cx="12" cy="12" r="8.500"/><path d="M12 3.500v17a8.500 8.500 0 0 0 0-17z" fill="currentColor"/>`,
	"copy":     `<rect x="9" y="9" width="11" height="11" rx="2"/><path d="M5.500 15A1.500 1.500 0 0 1 4 13.500v-8A1.500 1.500 0 0 1 5.500 4h8A1.500 1.500 0 0 1 15 5.500"/>`,
	"check":    `<path d="m5 12.500 4.500 4.500L19 7.500"/>`,
	"x":        `<path d="m6 6 12 12M18 6 6 18"/>`,
	"alert":    `<path d="M12 4 2.800 19.500h18.400zM12 10v4.500M12 17h.01"/>`,
	"info":     `<circle cx="12" cy="12" r="8.500"/><path d="M12 11v5M12 8h.01"/>`,
	"download": `<path d="M12 4v11m-4.500-4.500L12 15l4.500-4.500M4.500 19.500h15"/>`,
	"upload":   `<path d="M12 15.500V5M7.500 9 12 4.500 16.500 9M4 15v3.500A1.500 1.500 0 0 0 5.500 20h13a1.500 1.500 0 0 0 1.500-1.500V15"/>`,
	"file":     `<path d="M6 3.500h8l4.500 4.500v12a.5.5 0 0 1-.5.500H6a.5.5 0 0 1-.5-.5V4a.5.5 0 0 1 .5-.5zM14 3.500V8h4.500"/>`,
	"clock":    `<circle cx="12" cy="12" r="8.500"/><path d="M12 7.500V12l3 2"/>`,
	"half":     `<circle cx="12" cy="12" r="8.500"/><path d="M12 3.500v17a8.500 8.500 0 0 1 0-17z" fill="currentColor"/>`,
	"ban":      `<circle cx="12" cy="12" r="8.500"/><path d="m6 6 12 12"/>`,
	"trash":    `<path d="M4.500 7h15M9.500 7V4.500h5V7M6.500 7l1 12.500h9l1-12.500M10.500 10.500v5.500M13.500 10.500v5.500"/>`,
	"filter":   `<path d="M4 6h16M7 12h10M10 18h4"/>`,
	"server":   `<rect x="4" y="4.500" width="16" height="6" rx="1.500"/><rect x="4" y="13.500" width="16" height="6" rx="1.500"/><path d="M7.500 7.500h.01M7.500 16.500h.01"/>`,
	"plus":     `<path d="M12 5v14M5 12h14"/>`,
	"pause":    `<path d="M9 6v12M15 6v12"/>`,
	"play":     `<path d="M8 5.500v13l10.500-6.500z"/>`,
	"refresh":  `<path d="M20 5v5h-5M4 19v-5h5M19.500 10A8 8 0 0 0 5.600 7.300M4.500 14a8 8 0 0 0 13.900 2.700"/>`,
	"search":   `<circle cx="11" cy="11" r="6.500"/><path d="m16 16 4.500 4.500"/>`,
	"shield":   `<path d="M12 3.500 5 6v5.500c0 4.300 2.900 7.500 7 9 4.100-1.500 7-4.700 7-9V6zM9 12l2.200 2.200L15.500 10"/>`,
	"book":     `<path d="M12 6.500C10 5 7.500 4.500 4 4.500v13.500c3.500 0 6 .5 8 2 2-1.500 4.500-2 8-2V4.500c-3.500 0-6 .5-8 2zM12 6.500V20"/>`,
	"external": `<path d="M14 4.500h5.500V10M19.500 4.500 11 13M18 14v4.500a1 1 0 0 1-1 1H5.500a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1H10"/>`,
}

// icon returns a decorative icon: the text beside it has the meaning.
func icon(name string) (template.HTML, error) {
	d, ok := icons[name]
	if !ok {
		return "", fmt.Errorf("there is no icon %q", name)
	}
	return template.HTML(`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">` + d + `</svg>`), nil
}

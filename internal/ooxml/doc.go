// Package ooxml writes Office Open XML (ECMA-376). It writes parts of a package, and a
// [Workbook] of values with number formats.
package ooxml

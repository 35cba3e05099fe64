// Package ooxml writes Office Open XML (ECMA-376): the parts of a package, and workbooks
// of values with their number formats.
package ooxml

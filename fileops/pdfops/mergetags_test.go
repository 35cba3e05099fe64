package pdfops_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

// taggedFile returns a document whose page has a heading, of a type of its own,
// a table cell, a link and a form, all tagged. The names and numbers are always
// the same. roles and class are the entries of the role map and the attributes of
// a class.
func taggedFile(text, lang, roles, class string) []byte {
	return handmade("1.7",
		`<</Type/Catalog/Pages 2 0 R/StructTreeRoot 5 0 R/MarkInfo<</Marked true>>/Lang(`+lang+`)>>`,
		`<</Type/Pages/Kids[3 0 R]/Count 1>>`,
		`<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Annots[13 0 R]/StructParents 0/Resources<</Font<</F 11 0 R>>/XObject<</X 12 0 R>>>>>>`,
		stream("", `/Title<</MCID 0>>BDC BT /F 24 Tf 20 100 Td (`+text+`) Tj ET EMC /TD<</MCID 1>>BDC BT /F 9 Tf 20 60 Td (cell of `+text+`) Tj ET EMC /X Do`),
		`<</Type/StructTreeRoot/K[6 0 R 10 0 R]/ParentTree<</Kids[<</Limits[0 0]/Nums[0[7 0 R 8 0 R]]>><</Limits[3 9]/Nums[3 9 0 R 9[14 0 R]]>>]>>/ParentTreeNextKey 10`+
			`/RoleMap<<`+roles+`>>/ClassMap<</Wide<<`+class+`>>>>/IDTree<</Names[(cell)8 0 R]>>>>`,
		`<</Type/StructElem/S/Document/P 5 0 R/K[7 0 R 8 0 R 9 0 R 14 0 R]>>`,
		`<</Type/StructElem/S/Title/P 6 0 R/Pg 3 0 R/K 0/C/Wide>>`,
		`<</Type/StructElem/S/TD/P 6 0 R/Pg 3 0 R/K 1/ID(cell)/A<</O/Table/Headers[(cell)]>>>>`,
		`<</Type/StructElem/S/Link/P 6 0 R/K<</Type/OBJR/Obj 13 0 R/Pg 3 0 R>>>>`,
		`<</Type/StructElem/S/Art/P 5 0 R/T(aside of `+text+`)>>`,
		`<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>`,
		stream(`/Type/XObject/Subtype/Form/BBox[0 0 300 200]/StructParents 9/Resources<</Font<</F 11 0 R>>>>`, `/P<</MCID 0>>BDC BT /F 9 Tf 20 20 Td (form of `+text+`) Tj ET EMC`),
		`<</Type/Annot/Subtype/Link/Rect[10 150 100 170]/Border[0 0 1]/Contents(link of `+text+`)/StructParent 3/A<</S/URI/URI(https://example.org)>>>>`,
		`<</Type/StructElem/S/P/P 6 0 R/K<</Type/MCR/Pg 3 0 R/Stm 12 0 R/MCID 0>>>>`)
}

// structureOf returns what poppler shows of a structure tree, without object
// numbers and the numbers of renamed identifiers.
func structureOf(t *testing.T, path string) string {
	t.Helper()
	out, err := systest.Output(t, "pdfinfo", "-struct-text", path)
	systest.NoError(t, err)
	out = regexp.MustCompile(`Object \d+ \d+`).ReplaceAllString(out, "Object")
	out = strings.ReplaceAll(out, "Structure Contents:\n", "")
	if len(out) < 100 {
		t.Fatalf("no structure: %q", out)
	}
	return regexp.MustCompile(`(cell)-\d`).ReplaceAllString(out, "$1")
}

// The tags of all files stay, in one structure tree, whether the first file is
// tagged or not. The files use the same names and numbers, for different things.
func TestMergeTags(t *testing.T) {
	t.Parallel()
	a := taggedFile("alpha", "en", "/Title/H1/Art/Sect", "/O/Layout/TextAlign/Center")
	b := taggedFile("beta", "de", "/Title/Note/Art/Sect", "/O/Layout/TextAlign/End")
	c := taggedFile("gamma", "en", "/Title/H1/Art/Sect", "/O/Layout/TextAlign/Center")
	std := taggedFile("delta", "en", "/Art/Sect/P/Div", "/O/Layout/TextAlign/Center")
	plain := simple("plain")
	for name, files := range map[string][][]byte{
		"all tagged": {a, b, c}, "first is not": {plain, a, b, c, std}, "one between": {std, plain, b, plain, c}, "one only": {a, plain}, "last only": {plain, a},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, count := "", 0
			var in []*fileops.File
			for i, f := range files {
				in = append(in, pdf(fmt.Sprintf("%d.pdf", i), f))
				if bytes.Contains(f, []byte("StructTreeRoot")) {
					want += structureOf(t, save(t, in[i]))
					count++
				}
			}
			out := run(t, pdfops.Merge(), nil, in...)
			sound(t, out)
			p := save(t, out)
			if got := structureOf(t, p); got != want {
				t.Errorf("structure:\n%s\nwant:\n%s", got, want)
			}
			if info := shell(t, "pdfinfo", p); !strings.Contains(info, "Tagged:          yes") {
				t.Errorf("not tagged:\n%s", info)
			}

			q := readStructure(t, p)
			if len(q.parents) != 3*count || q.next != 3*count {
				t.Errorf("parent tree has keys %v, next is %d; want %d", q.parents, q.next, 3*count)
			}
			if len(q.content) != 3*count || len(q.orphans) > 0 {
				t.Errorf("content with numbers %v, want %d; %v have no element", q.content, 3*count, q.orphans)
			}
			if want := []string{"cell", "cell-2", "cell-3", "cell-4"}[:count]; !slices.Equal(q.ids, want) || !slices.Equal(q.headers, want) {
				t.Errorf("identifiers %v, headers %v; want %v", q.ids, q.headers, want)
			}
		})
	}
}

// A structure holds the numbers and names of a structure tree, as qpdf reads it.
type structure struct {
	parents, content []int
	orphans          []int // content without an element of the structure tree
	next             int
	ids, headers     []string
}

func readStructure(t *testing.T, path string) structure {
	t.Helper()
	var v struct{ Qpdf []map[string]any }
	systest.NoError(t, json.Unmarshal([]byte(shell(t, "qpdf", "--json=2", path)), &v))
	objects := v.Qpdf[1]
	resolve := func(o any) any {
		if s, ok := o.(string); ok && strings.HasSuffix(s, " R") {
			o = objects["obj:"+s]
		}
		if m, ok := o.(map[string]any); ok && m["value"] != nil {
			return m["value"]
		}
		if m, ok := o.(map[string]any); ok && m["stream"] != nil {
			return m["stream"].(map[string]any)["dict"]
		}
		return o
	}
	dict := func(o any) map[string]any { m, _ := resolve(o).(map[string]any); return m }
	array := func(o any) []any { a, _ := resolve(o).([]any); return a }
	text := func(o any) string { s, _ := resolve(o).(string); return strings.TrimPrefix(s, "u:") }

	var s structure
	root := dict(dict(dict(objects["trailer"])["/Root"])["/StructTreeRoot"])
	next, _ := resolve(root["/ParentTreeNextKey"]).(float64)
	s.next = int(next)
	parents := make(map[int]any)
	nums := array(dict(root["/ParentTree"])["/Nums"])
	for i := 0; i+1 < len(nums); i += 2 {
		s.parents = append(s.parents, int(nums[i].(float64)))
		parents[s.parents[i/2]] = nums[i+1]
	}
	names := array(dict(root["/IDTree"])["/Names"])
	for i := 0; i+1 < len(names); i += 2 {
		s.ids = append(s.ids, text(names[i]))
		if id := text(dict(names[i+1])["/ID"]); id != s.ids[i/2] {
			t.Errorf("%s leads to an element with the identifier %s", s.ids[i/2], id)
		}
	}
	for name, o := range objects {
		v := dict(o)
		for _, key := range []string{"/StructParent", "/StructParents"} {
			n, ok := v[key].(float64)
			if !ok {
				continue
			}
			s.content = append(s.content, int(n))
			if parents[int(n)] == nil {
				s.orphans = append(s.orphans, int(n))
			}
			// The element of an annotation refers to the annotation.
			if key == "/StructParent" && "obj:"+fmt.Sprint(dict(dict(parents[int(n)])["/K"])["/Obj"]) != name {
				t.Errorf("the element of %s is %v", name, dict(parents[int(n)]))
			}
		}
		if a := array(dict(v["/A"])["/Headers"]); len(a) > 0 {
			s.headers = append(s.headers, text(a[0]))
			if text(a[0]) != text(v["/ID"]) {
				t.Errorf("the cell %s has the header %s", text(v["/ID"]), text(a[0]))
			}
		}
	}
	slices.Sort(s.content)
	slices.Sort(s.headers)
	return s
}

// Merged files name a namespace once, and keep the language of each file.
func TestMergeTagNamespaces(t *testing.T) {
	t.Parallel()
	file := func(text, lang, extra string) []byte {
		return handmade("2.0",
			`<</Type/Catalog/Pages 2 0 R/StructTreeRoot 5 0 R/MarkInfo<</Marked true>>/Lang(`+lang+`)>>`,
			`<</Type/Pages/Kids[3 0 R]/Count 1>>`,
			`<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/StructParents 0/Resources<</Font<</F 8 0 R>>>>>>`,
			stream("", `/P<</MCID 0>>BDC BT /F 24 Tf 20 100 Td (`+text+`) Tj ET EMC`),
			`<</Type/StructTreeRoot/K 6 0 R/ParentTree<</Nums[0[6 0 R]]>>/Namespaces[7 0 R]>>`,
			`<</Type/StructElem/S/P/NS 7 0 R/P 5 0 R/Pg 3 0 R/K 0>>`,
			`<</Type/Namespace/NS(http://iso.org/pdf2/ssn)`+extra+`>>`,
			`<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>`)
	}
	out := run(t, pdfops.Merge(), nil, pdf("a.pdf", file("a", "en", "")), pdf("b.pdf", file("b", "de", "")), pdf("c.pdf", file("c", "en", "/RoleMapNS<</X/P>>")))
	sound(t, out)
	q := shell(t, "qpdf", "--qdf", "--object-streams=disable", save(t, out), "-")
	for text, want := range map[string]int{"/NS (http://iso.org/pdf2/ssn)": 2, "/Lang (de)": 1, "/Lang (en)": 1, "/S /P\n": 3} {
		if n := strings.Count(q, text); n != want {
			t.Errorf("%q occurs %d times, want %d", text, n, want)
		}
	}
}

package texmath

import (
	"strings"
)

// identifiers are the commands for letters.
var identifiers = pairs(`alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ varkappa ϰ
lambda λ mu μ nu ν xi ξ omicron ο pi π varpi ϖ rho ρ varrho ϱ sigma σ varsigma ς tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω
Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω
infty ∞ partial ∂ nabla ∇ ell ℓ hbar ℏ hslash ℏ imath ı jmath ȷ Re ℜ Im ℑ wp ℘ aleph ℵ beth ℶ emptyset ∅ varnothing ∅
angle ∠ triangle △ square □ Box □ Diamond ◇ clubsuit ♣ diamondsuit ♢ heartsuit ♡ spadesuit ♠ flat ♭ natural ♮ sharp ♯ top ⊤ bot ⊥
ldots … dots … cdots ⋯ vdots ⋮ ddots ⋱ dotsc … dotsb ⋯ dotsm ⋯ dotsi ⋯ prime ′ backprime ‵ degree ° complement ∁ blacksquare ■ checkmark ✓ S § P ¶ pounds £ euro €
% % # # & & _ _ $ $`)

// operators are the commands for operators, relations and arrows.
var operators = pairs(`pm ± mp ∓ times × div ÷ cdot ⋅ ast ∗ star ⋆ circ ∘ bullet ∙ oplus ⊕ ominus ⊖ otimes ⊗ oslash ⊘ odot ⊙ dagger † ddagger ‡ amalg ⨿
cap ∩ cup ∪ uplus ⊎ sqcap ⊓ sqcup ⊔ vee ∨ lor ∨ wedge ∧ land ∧ setminus ∖ smallsetminus ∖ wr ≀ lnot ¬ neg ¬ forall ∀ exists ∃ nexists ∄ colon :
le ≤ leq ≤ leqslant ⩽ ge ≥ geq ≥ geqslant ⩾ ne ≠ neq ≠ equiv ≡ approx ≈ approxeq ≊ sim ∼ simeq ≃ cong ≅ propto ∝ varpropto ∝ ll ≪ gg ≫ lll ⋘ ggg ⋙
prec ≺ succ ≻ preceq ⪯ succeq ⪰ in ∈ notin ∉ ni ∋ subset ⊂ supset ⊃ subseteq ⊆ supseteq ⊇ subsetneq ⊊ supsetneq ⊋ sqsubseteq ⊑ sqsupseteq ⊒
mid ∣ nmid ∤ parallel ∥ nparallel ∦ perp ⊥ vdash ⊢ dashv ⊣ models ⊨ vDash ⊨ Vdash ⊩ asymp ≍ bowtie ⋈ doteq ≐ triangleq ≜ coloneqq ≔ defeq ≝ lesssim ≲ gtrsim ≳
to → rightarrow → leftarrow ← gets ← leftrightarrow ↔ Rightarrow ⇒ Leftarrow ⇐ Leftrightarrow ⇔ iff ⟺ implies ⟹ impliedby ⟸
longrightarrow ⟶ longleftarrow ⟵ longleftrightarrow ⟷ Longrightarrow ⟹ Longleftarrow ⟸ Longleftrightarrow ⟺ mapsto ↦ longmapsto ⟼
hookrightarrow ↪ hookleftarrow ↩ rightharpoonup ⇀ rightharpoondown ⇁ leftharpoonup ↼ leftharpoondown ↽ rightleftharpoons ⇌ rightsquigarrow ⇝ nrightarrow ↛
uparrow ↑ downarrow ↓ updownarrow ↕ Uparrow ⇑ Downarrow ⇓ nearrow ↗ searrow ↘ swarrow ↙ nwarrow ↖ therefore ∴ because ∵ rightrightarrows ⇉ circlearrowright ↻ circlearrowleft ↺
surd √ ltimes ⋉ rtimes ⋊ boxtimes ⊠ boxplus ⊞ triangleleft ◃ triangleright ▹ unlhd ⊴ unrhd ⊵ lhd ⊲ rhd ⊳ vartriangleleft ⊲`)

// large are operators with limits.
var large = pairs(`sum ∑ prod ∏ coprod ∐ int ∫ iint ∬ iiint ∭ oint ∮ oiint ∯ bigcap ⋂ bigcup ⋃ bigsqcup ⨆ bigvee ⋁ bigwedge ⋀ bigoplus ⨁ bigotimes ⨂ bigodot ⨀ biguplus ⨄`)

// functions have upright names.
var functions = names(`arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim ln log max min Pr sec sin sinh sup tan tanh argmax argmin`,
	map[string]string{"limsup": "lim sup", "liminf": "lim inf"})

// withLimits are the functions whose indexes stand below them.
var withLimits = set(`det gcd inf lim liminf limsup max min Pr sup argmax argmin`)

// spaces are the widths of spaces.
var spaces = map[string]string{
	" ": "0.25em", ",": "0.167em", ":": "0.222em", ">": "0.222em", ";": "0.278em", "!": "-0.167em",
	"quad": "1em", "qquad": "2em", "enspace": "0.5em", "thinspace": "0.167em",
}

var accents = pairs(`hat ^ widehat ^ check ˇ tilde ~ widetilde ~ acute ´ grave ` + "`" + ` dot ˙ ddot ¨ dddot ⃛ breve ˘ bar ¯ overline ¯ vec → overrightarrow → overleftarrow ←
overbrace ⏞ underbrace ⏟ underline _ mathring ˚`)

// styles are the alphabets of commands.
var styles = pairs(`mathrm rm mathbf bf mathit it mathbb bb mathcal cal mathscr cal mathfrak frak mathsf sf mathtt tt boldsymbol bi bm bi mathnormal it mathop rm mathbin rm mathrel rm mathord rm Bbb bb pmb bi`)

var delimiters = map[string]string{
	".": "", `\{`: "{", `\}`: "}", `\lbrace`: "{", `\rbrace`: "}", `\lbrack`: "[", `\rbrack`: "]", `\langle`: "⟨", `\rangle`: "⟩",
	`\|`: "‖", `\Vert`: "‖", `\lVert`: "‖", `\rVert`: "‖", `\vert`: "|", `\lvert`: "|", `\rvert`: "|", `\lfloor`: "⌊", `\rfloor`: "⌋",
	`\lceil`: "⌈", `\rceil`: "⌉", `\backslash`: `\`, `\uparrow`: "↑", `\downarrow`: "↓", "<": "⟨", ">": "⟩", `\lgroup`: "⟮", `\rgroup`: "⟯",
}

// An environment is a kind of table.
type environment struct {
	open, end string
	columns   string // alignments, repeated
	tight     bool
	display   bool
}

var environments = map[string]environment{
	"matrix": {}, "smallmatrix": {}, "array": {}, "pmatrix": {open: "(", end: ")"}, "bmatrix": {open: "[", end: "]"}, "Bmatrix": {open: "{", end: "}"},
	"vmatrix": {open: "|", end: "|"}, "Vmatrix": {open: "‖", end: "‖"}, "cases": {open: "{", columns: "l"}, "rcases": {end: "}", columns: "l"},
	"aligned": {columns: "rl", tight: true, display: true}, "align": {columns: "rl", tight: true, display: true}, "split": {columns: "rl", tight: true, display: true},
	"alignedat": {columns: "rl", tight: true, display: true}, "alignat": {columns: "rl", tight: true, display: true}, "eqnarray": {columns: "rcl", display: true},
	"gather": {display: true}, "gathered": {display: true}, "equation": {display: true}, "multline": {display: true}, "displaymath": {display: true}, "substack": {},
}

func pairs(s string) map[string]string {
	m := map[string]string{}
	f := strings.Fields(s)
	for i := 0; i+1 < len(f); i += 2 {
		m[f[i]] = f[i+1]
	}
	return m
}

func names(s string, more map[string]string) map[string]string {
	for name := range strings.FieldsSeq(s) {
		more[name] = name
	}
	return more
}

func set(s string) map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq(s) {
		m[name] = true
	}
	return m
}

// Blocks of mathematical letters in Unicode: the first capital, small letter, digit, and
// capital and small Greek letter; 0 where there is none.
var blocks = map[string][5]rune{
	"bf": {0x1d400, 0x1d41a, 0x1d7ce, 0x1d6a8, 0x1d6c2}, "it": {0x1d434, 0x1d44e, 0, 0x1d6e2, 0x1d6fc}, "bi": {0x1d468, 0x1d482, 0x1d7ce, 0x1d71c, 0x1d736},
	"cal": {0x1d49c, 0x1d4b6}, "frak": {0x1d504, 0x1d51e}, "bb": {0x1d538, 0x1d552, 0x1d7d8}, "sf": {0x1d5a0, 0x1d5ba, 0x1d7e2}, "tt": {0x1d670, 0x1d68a, 0x1d7f6},
}

// holes are the letters that Unicode has elsewhere.
var holes = map[rune]rune{
	0x1d455: 'ℎ', 0x1d49d: 'ℬ', 0x1d4a0: 'ℰ', 0x1d4a1: 'ℱ', 0x1d4a3: 'ℋ', 0x1d4a4: 'ℐ', 0x1d4a7: 'ℒ', 0x1d4a8: 'ℳ', 0x1d4ad: 'ℛ', 0x1d4ba: 'ℯ', 0x1d4bc: 'ℊ', 0x1d4c4: 'ℴ',
	0x1d506: 'ℭ', 0x1d50b: 'ℌ', 0x1d50c: 'ℑ', 0x1d515: 'ℜ', 0x1d51d: 'ℨ', 0x1d53a: 'ℂ', 0x1d53f: 'ℍ', 0x1d545: 'ℕ', 0x1d547: 'ℙ', 0x1d548: 'ℚ', 0x1d549: 'ℝ', 0x1d551: 'ℤ',
}

// alphabet returns letters and digits in an alphabet.
func alphabet(style, s string) string {
	b, ok := blocks[style]
	if !ok {
		return s
	}
	return strings.Map(func(r rune) rune {
		out := r
		switch {
		case r >= 'A' && r <= 'Z':
			out = b[0] + r - 'A'
		case r >= 'a' && r <= 'z':
			out = b[1] + r - 'a'
		case r >= '0' && r <= '9' && b[2] > 0:
			out = b[2] + r - '0'
		case r >= 'Α' && r <= 'Ω' && b[3] > 0:
			out = b[3] + r - 'Α'
		case r >= 'α' && r <= 'ω' && b[4] > 0:
			out = b[4] + r - 'α'
		}
		if h, ok := holes[out]; ok {
			return h
		}
		return out
	}, s)
}

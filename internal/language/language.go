// Package language guesses the language of a text by its script and its most frequent
// words. It needs a few sentences, and knows the languages of most texts; libraries that
// know more need models of 100 MB.
package language

import (
	"slices"
	"strings"
	"unicode"
)

const (
	// leastWords and leastLetters are the shortest texts whose language is guessed. Scripts
	// without spaces are counted by letters.
	leastWords   = 12
	leastLetters = 20

	// leastShare is the least share of frequent words in a text. Running text in a known
	// language has 0.2 to 0.5.
	leastShare = 0.1

	// leastKnown is the least number of different frequent words.
	leastKnown = 3

	// leastLead is how much better the best language must fit than the next one.
	leastLead = 1.15

	// purity is the least share of letters in one script.
	purity = 0.6
)

// A script is a writing system. If its texts have one language only, alone names it.
type script struct {
	table *unicode.RangeTable
	alone string
}

var scripts = []script{
	{unicode.Latin, ""}, {unicode.Cyrillic, ""}, {unicode.Arabic, ""}, {unicode.Devanagari, ""},
	{unicode.Greek, "el"}, {unicode.Hebrew, "he"}, {unicode.Bengali, "bn"}, {unicode.Tamil, "ta"}, {unicode.Telugu, "te"}, {unicode.Kannada, "kn"},
	{unicode.Malayalam, "ml"}, {unicode.Gujarati, "gu"}, {unicode.Gurmukhi, "pa"}, {unicode.Sinhala, "si"}, {unicode.Thai, "th"}, {unicode.Lao, "lo"},
	{unicode.Khmer, "km"}, {unicode.Myanmar, "my"}, {unicode.Georgian, "ka"}, {unicode.Armenian, "hy"}, {unicode.Ethiopic, "am"},
	{unicode.Han, "zh"}, {unicode.Hiragana, "ja"}, {unicode.Katakana, "ja"}, {unicode.Hangul, "ko"},
}

// Detect returns the language of a text as a tag of BCP 47, such as "de". It returns "" if the
// text is too short, mixed, or in a language that it does not know.
func Detect(text string) string {
	letters := make([]int, len(scripts))
	total := 0
	for _, r := range text {
		if !unicode.IsLetter(r) {
			continue
		}
		for i := range scripts {
			if unicode.Is(scripts[i].table, r) {
				letters[i]++
				break
			}
		}
		total++
	}
	if total < leastLetters {
		return ""
	}
	best, of := "", 0
	byName := make(map[string]int)
	for i, n := range letters {
		if name := scripts[i].alone; name != "" {
			byName[name] += n
		} else if n > of {
			best, of = "", n
		}
	}
	kana := byName["ja"]
	if kana*10 >= byName["zh"] { // Japanese has both
		byName["ja"] += byName["zh"]
		byName["zh"] = 0
	}
	for name, n := range byName {
		if n > of {
			best, of = name, n
		}
	}
	switch {
	case float64(of) < purity*float64(total):
		return ""
	case best != "":
		return best
	}
	return byWords(text)
}

// byWords returns the language whose frequent words a text has most. A word of several
// languages counts for each of them in part.
func byWords(text string) string {
	score, words, hits := make(map[string]float64), 0, make(map[string]int)
	known, seen := make(map[string]int), make(map[string]bool)
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.Is(unicode.Mn, r) && !unicode.Is(unicode.Mc, r) && r != '\u200c'
	}) {
		words++
		for _, l := range languagesOf[w] {
			score[l] += 1 / float64(len(languagesOf[w]))
			hits[l]++
			if !seen[w] {
				known[l]++
			}
		}
		if len(languagesOf[w]) > 0 {
			seen[w] = true
		}
	}
	best, next := "", ""
	for l, n := range score {
		switch {
		case n > score[best] || n == score[best] && l < best:
			best, next = l, best
		case n > score[next]:
			next = l
		}
	}
	if words < leastWords || known[best] < leastKnown || float64(hits[best]) < leastShare*float64(words) || score[best] < leastLead*score[next] {
		return ""
	}
	return best
}

// languagesOf has the languages of each frequent word.
var languagesOf = func() map[string][]string {
	m := make(map[string][]string)
	for l, words := range frequent {
		for w := range strings.FieldsSeq(words) {
			if !slices.Contains(m[w], l) {
				m[w] = append(m[w], l)
			}
		}
	}
	return m
}()

// frequent has frequent words of languages that share a script with others.
var frequent = map[string]string{
	"en": "the of and to a in is that for it as was with be by on not he his but at are this have from or had an they which one you were all her she there would their we him been has when who will no more if out so what up said its about than into them can only other time new some these",
	"de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis mehr durch man sein wurde wenn können ich wir",
	"fr": "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont avec ou son aux cette ont ses mais comme on tout nous sa elle été leur être fait ces même sans deux peut dont entre l d qu c s n",
	"es": "de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le ha me si sin sobre este ya entre cuando todo esta ser son dos también fue había era muy años hasta desde está mi porque qué sólo yo hay vez puede todos así nos",
	"it": "di e il la che in un a per è una del non con si le da i al sono della come più anche dei ha nel ma alla lo gli delle su se o due ed nella suo dal questo essere ad l era fu stato dalla questa loro sua ci degli solo fra hanno tra stata",
	"pt": "de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das tem à seu sua ou ser quando muito há nos já está eu também só pelo pela até isso ela entre era depois sem mesmo aos ter seus quem nas me esse pelos",
	"nl": "de van het een en in is dat op te zijn met voor niet aan er die om als ook bij uit nog door worden over maar hij naar wordt dan heeft of tot zich hebben geen meer kan zal jaar had wel deze veel onder andere alleen nu was ze haar we",
	"sv": "och i att det som en på är av för med den till inte om ett han de har var jag från så kan när men man eller nu sin vid under efter ut ska upp vara också då över där år alla sig hade blir mot mycket hon detta bara",
	"da": "og i at det er en til af som på for med den de ikke har et der han var om fra jeg kan men vi så ved være blev eller hun efter når også nu år skal ud over selv hvor hvad kun meget mere sig ved blive haft havde mod enhver nogen uden heller bør lige hver hverandre anden alle disse deres mellem ingen derfor før mens dog noget andre både mig dig denne dette skulle gøre",
	"nb": "og i det er på til som en for av med at har de ikke den et om han var fra seg jeg men så kan vi eller ble ved også etter være når ut skal opp hun nå år over mot hvor bare mer alle dette da blir hadde hva meg deg noe ut mellom både enhver noen uten heller bør like hver hverandre annen disse deres ingen derfor før mens dog andre denne gjøre blei",
	"fi": "ja on ei se että oli hän mutta ovat kuin myös joka sen ole mukaan niin jos kun tai sitä hänen tämä olisi voi vain ollut jo nyt sekä kaikki mitä minä vielä jotka ovat tämän vuoden jonka siitä he me ne ihan koska mukaan olla",
	"pl": "w i na z się nie do to że jest o od jak po za ale dla co a przez przy tym być czy oraz ze są może już tylko tak jego był było jej które który tego lub roku bardzo także gdy jeszcze aby pod więc mnie ich",
	"cs": "a v se na je že o s z do i ve k pro za by ale si po jsem jako podle od jeho jsou tak které který byl nebo už také při až bylo být má jen jak před byla není co mezi když aby však této tím ze",
	"sk": "a v sa na je že o s z do i vo k pre za by ale si po som ako podľa od jeho sú tak ktoré ktorý bol alebo už aj pri až bolo byť má len pred bola nie čo medzi keď aby však tejto tým zo",
	"sl": "in je v na se da za so ki z pa tudi ne s po kot bi iz o ali od pri še ni do ga bilo ter če lahko kako samo jih biti sem že več med kar vse svoje bil",
	"hr": "i je u na se da za su od s iz o kao koji a ne li što ili do po biti bi ali će sam to te bio kod tako samo već koja može prema kako svoje bila nije mu ih nakon",
	"hu": "a az és hogy nem is egy ez meg de csak már volt mint vagy el még ha mert kell szerint aki ami azt ezt ki lehet van fel majd nagyon után ezért minden így ők vannak lesz között nincs",
	"ro": "de și în a la cu pe nu un o care din mai este că pentru se sa au sunt fi ce prin dar o după fost lui sau ca al ale unei unui până doar cei ei între foarte acest această fără",
	"tr": "ve bir bu da de için ile çok daha ne olarak gibi olan kadar ben var o en ki mi ama değil sonra şey her iki ise diye ya oldu olduğu göre bütün onun kendi nasıl yok bunu tarafından ancak hem",
	"vi": "và của là có không được cho trong một các với người những này để đã khi đến cũng ra như về từ ở tôi lại còn phải vào thì sẽ nhiều mà tại hay theo sau nó đó trên",
	"id": "yang dan di dari untuk dengan ini itu pada tidak dalam akan adalah atau ke oleh karena juga ada mereka bisa sudah saya kita saat telah tersebut lebih sebagai para harus dapat seperti banyak hanya secara menjadi kami setiap orang satu sama lain seorang hak semua mempunyai antara kepada bagi bahwa maupun namun agar sebuah sedangkan kalau pun berbeda tanpa alasan bagaimana sering",
	"ms": "yang dan di untuk dengan ini pada tidak dalam akan itu dari adalah ke oleh kerana juga ada mereka telah tersebut lebih sebagai boleh hendaklah atau kepada ialah bagi daripada setiap orang satu mana sama lain seorang hak semua mempunyai antara harus bahawa iaitu apabila sekiranya mahu sahaja tanpa pun mana-mana terhadap",
	"ca": "de la i el que a en un els les per del es amb una no és d l al va com més són s seva o seu dels però aquest ha pel tot va també fins aquesta ser entre han tots sobre hi molt quan sense",
	"ru": "и в не на что с по как это из у за от к но а же для так его то все она он они был было мы вы ее бы только или уже если при до когда даже нет есть может быть чтобы который которые во о",
	"uk": "і в не на що з та як це до у за від є для по про він вона вони але був було його її так чи або вже якщо при коли тільки може бути щоб який які й ми ви ще усі всі із",
	"bg": "и в не на че с по как това от за е да се са към или но той тя те си като до при ще бе беше има може след които който само още все над през бъде със във",
	"sr": "и у не на да је се са за од као су из који а о што или до по бити би али ће сам то те био код тако само већ која може према како своје била није му их",
	"be": "і ў не на што з па як гэта да у за ад ён яна яны але быў было яго яе так ці або ужо калі пры толькі можа каб які якія мы вы яшчэ усе з для",
	"ar": "في من على أن إلى هذا التي لا الذي ما عن هذه مع كان أو كل قد لم بعد ذلك بين هو هي كما وقد عند غير حتى إن أي له ولا فيه كانت منذ وهو",
	"fa": "و در به از که این را با است برای آن یک خود تا بر هم شد ها می شده نیز کرد دارد بود های اند او ما باید هر نمی وی شود دیگر پس",
	"ur": "کے میں کی ہے اور سے کا کو ہیں پر نے اس کہ یہ نہیں ایک بھی ہو تھا جو تھے کر وہ لیے تو گیا ان اپنے کیا ہی",
	"hi": "के में की है और से का को पर ने यह कि हैं इस एक भी नहीं तो था जो कर हो ही वह लिए या थे गया साथ अपने जा उन कुछ",
	"mr": "आणि आहे या त्या हे ते की नाही व तर मध्ये होते असे आहेत हा ही एक केले होती त्यांनी असा मी तो करून",
	"ne": "र छ को मा यो पनि हो भने छन् गर्न थियो तर हुने गरेको त्यो लागि भएको एक यस उनले गर्ने",
}

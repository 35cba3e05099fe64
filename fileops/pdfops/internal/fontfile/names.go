package fontfile

// standardText lists the standard strings of CFF fonts in numerical order (Adobe
// Technical Note 5176, appendix A).
const standardText = `
.notdef space exclam quotedbl numbersign dollar percent ampersand quoteright parenleft parenright asterisk
plus comma hyphen period slash zero one two three four five six seven eight nine colon semicolon less equal
greater question at A B C D E F G H I J K L M N O P Q R S T U V W X Y Z bracketleft backslash bracketright
asciicircum underscore quoteleft a b c d e f g h i j k l m n o p q r s t u v w x y z braceleft bar braceright
asciitilde exclamdown cent sterling fraction yen florin section currency quotesingle quotedblleft
guillemotleft guilsinglleft guilsinglright fi fl endash dagger daggerdbl periodcentered paragraph bullet
quotesinglbase quotedblbase quotedblright guillemotright ellipsis perthousand questiondown grave acute
circumflex tilde macron breve dotaccent dieresis ring cedilla hungarumlaut ogonek caron emdash AE ordfeminine
Lslash Oslash OE ordmasculine ae dotlessi lslash oslash oe germandbls onesuperior logicalnot mu trademark Eth
onehalf plusminus Thorn onequarter divide brokenbar degree thorn threequarters twosuperior registered minus
eth multiply threesuperior copyright Aacute Acircumflex Adieresis Agrave Aring Atilde Ccedilla Eacute
Ecircumflex Edieresis Egrave Iacute Icircumflex Idieresis Igrave Ntilde Oacute Ocircumflex Odieresis Ograve
Otilde Scaron Uacute Ucircumflex Udieresis Ugrave Yacute Ydieresis Zcaron aacute acircumflex adieresis agrave
aring atilde ccedilla eacute ecircumflex edieresis egrave iacute icircumflex idieresis igrave ntilde oacute
ocircumflex odieresis ograve otilde scaron uacute ucircumflex udieresis ugrave yacute ydieresis zcaron
exclamsmall Hungarumlautsmall dollaroldstyle dollarsuperior ampersandsmall Acutesmall parenleftsuperior
parenrightsuperior twodotenleader onedotenleader zerooldstyle oneoldstyle twooldstyle threeoldstyle
fouroldstyle fiveoldstyle sixoldstyle sevenoldstyle eightoldstyle nineoldstyle commasuperior
threequartersemdash periodsuperior questionsmall asuperior bsuperior centsuperior dsuperior esuperior
isuperior lsuperior msuperior nsuperior osuperior rsuperior ssuperior tsuperior ff ffi ffl parenleftinferior
parenrightinferior Circumflexsmall hyphensuperior Gravesmall Asmall Bsmall Csmall Dsmall Esmall Fsmall Gsmall
Hsmall Ismall Jsmall Ksmall Lsmall Msmall Nsmall Osmall Psmall Qsmall Rsmall Ssmall Tsmall Usmall Vsmall
Wsmall Xsmall Ysmall Zsmall colonmonetary onefitted rupiah Tildesmall exclamdownsmall centoldstyle Lslashsmall
Scaronsmall Zcaronsmall Dieresissmall Brevesmall Caronsmall Dotaccentsmall Macronsmall figuredash
hypheninferior Ogoneksmall Ringsmall Cedillasmall questiondownsmall oneeighth threeeighths fiveeighths
seveneighths onethird twothirds zerosuperior foursuperior fivesuperior sixsuperior sevensuperior eightsuperior
ninesuperior zeroinferior oneinferior twoinferior threeinferior fourinferior fiveinferior sixinferior
seveninferior eightinferior nineinferior centinferior dollarinferior periodinferior commainferior Agravesmall
Aacutesmall Acircumflexsmall Atildesmall Adieresissmall Aringsmall AEsmall Ccedillasmall Egravesmall
Eacutesmall Ecircumflexsmall Edieresissmall Igravesmall Iacutesmall Icircumflexsmall Idieresissmall Ethsmall
Ntildesmall Ogravesmall Oacutesmall Ocircumflexsmall Otildesmall Odieresissmall OEsmall Oslashsmall
Ugravesmall Uacutesmall Ucircumflexsmall Udieresissmall Yacutesmall Thornsmall Ydieresissmall 001.000 001.001
001.002 001.003 Black Bold Book Light Medium Regular Roman Semibold`

// latinText lists glyph names with their characters (Adobe Glyph List): those in
// the encodings of ISO 32000-2 annex D, and those of Central Europe.
const latinText = `
A 0041 AE 00C6 Aacute 00C1 Abreve 0102 Acircumflex 00C2 Adieresis 00C4 Agrave 00C0 Aogonek 0104 Aring 00C5
Atilde 00C3 B 0042 C 0043 Cacute 0106 Ccaron 010C Ccedilla 00C7 D 0044 Dcaron 010E Dcroat 0110 Delta 2206 E
0045 Eacute 00C9 Ecaron 011A Ecircumflex 00CA Edieresis 00CB Egrave 00C8 Eogonek 0118 Eth 00D0 Euro 20AC F
0046 G 0047 Gbreve 011E H 0048 I 0049 Iacute 00CD Icircumflex 00CE Idieresis 00CF Idot 0130 Idotaccent 0130 Igrave 00CC
J 004A K 004B L 004C Lacute 0139 Lcaron 013D Lslash 0141 M 004D N 004E Nacute 0143 Ncaron 0147 Ntilde 00D1 O
004F OE 0152 Oacute 00D3 Ocircumflex 00D4 Odieresis 00D6 Ograve 00D2 Ohungarumlaut 0150 Omega 2126 Oslash 00D8
Otilde 00D5 P 0050 Q 0051 R 0052 Racute 0154 Rcaron 0158 S 0053 Sacute 015A Scaron 0160 Scedilla 015E
Scommaaccent 0218 T 0054 Tcaron 0164 Tcommaaccent 0162 Thorn 00DE U 0055 Uacute 00DA Ucircumflex 00DB
Udieresis 00DC Ugrave 00D9 Uhungarumlaut 0170 Uring 016E V 0056 W 0057 X 0058 Y 0059 Yacute 00DD Ydieresis
0178 Z 005A Zacute 0179 Zcaron 017D Zdotaccent 017B a 0061 aacute 00E1 abreve 0103 acircumflex 00E2 acute 00B4
adieresis 00E4 ae 00E6 agrave 00E0 alpha 03B1 ampersand 0026 aogonek 0105 approxequal 2248 aring 00E5
arrowdown 2193 arrowleft 2190 arrowright 2192 arrowup 2191 asciicircum 005E asciitilde 007E asterisk 002A at
0040 atilde 00E3 b 0062 backslash 005C bar 007C beta 03B2 braceleft 007B braceright 007D bracketleft 005B
bracketright 005D breve 02D8 brokenbar 00A6 bullet 2022 c 0063 cacute 0107 caron 02C7 ccaron 010D ccedilla
00E7 cedilla 00B8 cent 00A2 circumflex 02C6 colon 003A comma 002C copyright 00A9 currency 00A4 d 0064 dagger
2020 daggerdbl 2021 dcaron 010F dcroat 0111 degree 00B0 delta 03B4 dieresis 00A8 divide 00F7 dollar 0024
dotaccent 02D9 dotlessi 0131 e 0065 eacute 00E9 ecaron 011B ecircumflex 00EA edieresis 00EB egrave 00E8 eight
0038 ellipsis 2026 emdash 2014 endash 2013 eogonek 0119 epsilon 03B5 equal 003D eth 00F0 exclam 0021
exclamdown 00A1 f 0066 ff FB00 ffi FB03 ffl FB04 fi FB01 five 0035 fl FB02 florin 0192 four 0034 fraction 2044
g 0067 gamma 03B3 gbreve 011F germandbls 00DF grave 0060 greater 003E greaterequal 2265 guillemotleft 00AB
guillemotright 00BB guilsinglleft 2039 guilsinglright 203A h 0068 hungarumlaut 02DD hyphen 002D i 0069 iacute
00ED icircumflex 00EE idieresis 00EF igrave 00EC increment 2206 infinity 221E integral 222B j 006A k 006B l
006C lacute 013A lambda 03BB lcaron 013E less 003C lessequal 2264 logicalnot 00AC lozenge 25CA lslash 0142 m
006D macron 00AF middot 00B7 minus 2212 minute 2032 mu 00B5 mu1 00B5 multiply 00D7 n 006E nacute 0144 nbspace
00A0 ncaron 0148 nine 0039 notequal 2260 ntilde 00F1 numbersign 0023 o 006F oacute 00F3 ocircumflex 00F4
odieresis 00F6 oe 0153 ogonek 02DB ograve 00F2 ohungarumlaut 0151 omega 03C9 one 0031 onehalf 00BD onequarter
00BC onesuperior 00B9 ordfeminine 00AA ordmasculine 00BA oslash 00F8 otilde 00F5 overscore 00AF p 0070
paragraph 00B6 parenleft 0028 parenright 0029 partialdiff 2202 percent 0025 period 002E periodcentered 00B7
perthousand 2030 pi 03C0 plus 002B plusminus 00B1 product 220F q 0071 question 003F questiondown 00BF quotedbl
0022 quotedblbase 201E quotedblleft 201C quotedblright 201D quoteleft 2018 quoteright 2019 quotesinglbase 201A
quotesingle 0027 r 0072 racute 0155 radical 221A rcaron 0159 registered 00AE ring 02DA s 0073 sacute 015B
scaron 0161 scedilla 015F scommaaccent 0219 second 2033 section 00A7 semicolon 003B seven 0037 sfthyphen 00AD
sigma 03C3 six 0036 slash 002F space 0020 sterling 00A3 summation 2211 t 0074 tcaron 0165 tcommaaccent 0163
theta 03B8 thorn 00FE three 0033 threequarters 00BE threesuperior 00B3 tilde 02DC trademark 2122 two 0032
twosuperior 00B2 u 0075 uacute 00FA ucircumflex 00FB udieresis 00FC ugrave 00F9 uhungarumlaut 0171 underscore
005F uring 016F v 0076 w 0077 x 0078 y 0079 yacute 00FD ydieresis 00FF yen 00A5 z 007A zacute 017A zcaron 017E
zdotaccent 017C zero 0030`

// macText lists the first glyph names of the Macintosh order, as the table post
// numbers them, as far as latinText needs them (ISO/IEC 14496-22, 5.2.8).
const macText = `
.notdef .null nonmarkingreturn space exclam quotedbl numbersign dollar percent ampersand quotesingle parenleft
parenright asterisk plus comma hyphen period slash zero one two three four five six seven eight nine colon
semicolon less equal greater question at A B C D E F G H I J K L M N O P Q R S T U V W X Y Z bracketleft
backslash bracketright asciicircum underscore grave a b c d e f g h i j k l m n o p q r s t u v w x y z
braceleft bar braceright asciitilde Adieresis Aring Ccedilla Eacute Ntilde Odieresis Udieresis aacute agrave
acircumflex adieresis atilde aring ccedilla eacute egrave ecircumflex edieresis iacute igrave icircumflex
idieresis ntilde oacute ograve ocircumflex odieresis otilde uacute ugrave ucircumflex udieresis dagger degree
cent sterling section bullet paragraph germandbls registered copyright trademark acute dieresis notequal AE
Oslash infinity plusminus lessequal greaterequal yen mu partialdiff summation product pi integral ordfeminine
ordmasculine Omega ae oslash questiondown exclamdown logicalnot radical florin approxequal Delta guillemotleft
guillemotright ellipsis nonbreakingspace Agrave Atilde Otilde OE oe endash emdash quotedblleft quotedblright
quoteleft quoteright divide lozenge ydieresis Ydieresis fraction currency guilsinglleft guilsinglright fi fl
daggerdbl periodcentered quotesinglbase quotedblbase perthousand Acircumflex Ecircumflex Aacute Edieresis
Egrave Iacute Icircumflex Idieresis Igrave Oacute Ocircumflex apple Ograve Uacute Ucircumflex Ugrave dotlessi
circumflex tilde macron breve dotaccent ring cedilla hungarumlaut ogonek caron Lslash lslash Scaron scaron
Zcaron zcaron brokenbar Eth eth Yacute yacute Thorn thorn minus multiply onesuperior twosuperior threesuperior
onehalf onequarter threequarters franc Gbreve gbreve Idotaccent Scedilla scedilla Cacute cacute Ccaron ccaron
dcroat`

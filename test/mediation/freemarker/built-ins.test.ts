/** Built-ins of templates, by FreeMarker's manual (2.3.30). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rendered } from './rendered.ts'

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: templates

const DATA = JSON.stringify({
  s: 'It is a <test> & "more"',
  path: 'a/b c/ä',
  xs: ['b', 'C', 'a'],
  ns: [10, 9, 100],
  people: [
    { name: 'Bob', a: { b: 2 } },
    { name: 'Ann', a: { b: 1 } },
  ],
  h: { x: 1, y: 2 },
  null: null,
  nested: '{"a": [1, {"b": "c"}]}',
})

const ROWS: readonly (readonly [template: string, output: string])[] = [
  // Texts.
  [
    '${"  hello wOrld"?cap_first}|${"Hello"?uncap_first}|${"gREEN mouse"?capitalize}',
    '  Hello wOrld|hello|Green Mouse',
  ],
  ['${"abC"?upper_case} ${"abC"?lower_case} ${"abC"?upperCase}', 'ABC abc ABC'],
  ['${s?contains("test")?c} ${s?starts_with("It")?c} ${s?ends_with("x")?c}', 'true true false'],
  [
    '${"abcabc"?index_of("bc")} ${"abcabc"?index_of("bc", 2)} ${"abcabc"?last_index_of("ab")} ${"abcabc"?index_of("z")}',
    '1 4 3 -1',
  ],
  [
    '${"foo"?ensure_starts_with("/")} ${"/foo"?ensure_starts_with("/")} ${"foo"?ensure_ends_with("/")}',
    '/foo /foo foo/',
  ],
  ['${"abcdef"?remove_beginning("abc")} ${"abcdef"?remove_ending("def")} ${"abc"?remove_ending("x")}', 'def abc abc'],
  [
    '${"a:b:c"?keep_after(":")} ${"a:b:c"?keep_after_last(":")} ${"a:b:c"?keep_before(":")} ${"a:b:c"?keep_before_last(":")}',
    'b:c c a a:b',
  ],
  ['[${"abc"?keep_after(":")}] [${"abc"?keep_before(":")}]', '[] [abc]'],
  ['${s?xml}', 'It is a &lt;test&gt; &amp; &quot;more&quot;'],
  ['${"<\'\\">"?html}|${"\'"?xhtml}|${"\'"?xml}', '&lt;&#39;&quot;&gt;|&#39;|&apos;'],
  ['${path?url} ${path?url_path} ${"a+b(c)"?url("UTF-8")}', 'a%2Fb%20c%2F%C3%A4 a/b%20c/%C3%A4 a%2Bb%28c%29'],
  ['${"a\\"b\\\\c\\n\\x0001</script>\\x20"?json_string}', 'a\\"b\\\\c\\n\\u0001<\\/script> '],
  ['${"it\'s \\"x\\""?json_string}|${"it\'s \\"x\\" >"?js_string}', 'it\'s \\"x\\"|it\\\'s \\"x\\" \\>'],
  [
    '[${"ab"?left_pad(4)}] [${"ab"?right_pad(4, "-")}] [${"abcd"?left_pad(2)}] [${"ab"?left_pad(7, "123")}]',
    '[  ab] [ab--] [abcd] [12312ab]',
  ],
  ['${"abc"?length} ${""?length}', '3 0'],
  ['${"abcab"?replace("ab", "X")} ${"abab"?replace("ab", "$1", "f")} ${"aB"?replace("b", "x", "i")}', 'XcX $1ab ax'],
  ['${"2026-01-02"?replace("(\\\\d+)-(\\\\d+)", "$2/$1", "r")} ${"abab"?replace("[a]", "x", "rf")}', '01/2026-02 xbab'],
  ['${"a,b,,c"?split(",")?join("|")} ${"abc"?split("")?size}', 'a|b||c 3'],
  ['${"abcdef"?substring(2)} ${"abcdef"?substring(2, 4)}', 'cdef cd'],
  ['[${"  a b "?trim}] ${"a  b\\tc"?word_list?size} [${"a\\n"?chop_linebreak}]', '[a b] 3 [a]'],
  [
    '${"fooo"?matches("fo*")?c} ${"a"?matches("b")?string("y", "n")} ${"John Doe"?matches("(\\\\w+) (\\\\w+)")?groups[2]}',
    'true n Doe',
  ],
  ['<#if "abc"?matches("^A.*", "i")>yes</#if>', 'yes'],
  ['${nested?eval_json.a[1].b}', 'c'],
  ['${"1.50"?number + 1} ${" 12 "?number} ${"1e3"?number} ${"-0.5"?number}', '2.5 12 1,000 -0.5'],
  ['${"true"?boolean?c} ${true?boolean?c}', 'true true'],
  // Numbers.
  ['${-5?abs} ${(-5)?abs} ${1.5?ceiling} ${1.5?floor} ${-1.5?floor}', '-5 5 2 1 -1'],
  ['${2.5?round} ${(-2.5)?round} ${1.4?round} ${1.9?int} ${(-1.9)?int}', '3 -2 1 1 -1'],
  ['${1234567.8912?c} ${0.1?c} ${100?c}', '1234567.8912 0.1 100'],
  ['${1234567.8912} ${0.0005} ${0.0015} ${1000000}', '1,234,567.891 0 0.002 1,000,000'],
  [
    '${1.5?string("0.00")} ${12?string("000")} ${1234.5?string("#,##0.00")} ${0.256?string("0%")} ${1234.5?string("0")}',
    '1.50 012 1,234.50 26% 1234',
  ],
  [
    '${1234.5?string.computer} ${1234.5?string["0.0"]} ${12.5?string.currency} ${0.5?string.percent} ${5?string.number}',
    '1234.5 1234.5 $12.50 50% 5',
  ],
  [
    '${0.5?string(".##")} ${0?string("#.##")} ${(-1.255)?string("0.00")} ${7?string("\'#\'0")} ${1?string("0.##")}',
    '.5 0 -1.26 #7 1',
  ],
  ['${("NaN"?number)?is_nan?c} ${("Infinity"?number)?is_infinite?c} ${"Infinity"?number}', 'true true ∞'],
  [
    '${true?string("yes", "no")} ${false?string("yes", "no")} ${true?then("a", missing)} ${false?then(missing, "b")}',
    'yes no a b',
  ],
  ['${5?switch(1, "one", 5, "five", "other")} ${"x"?switch("y", 1, 2)}', 'five 2'],
  // Dates.
  [
    '${"2026-03-04"?date("yyyy-MM-dd")?string("dd.MM.yyyy")} ${"2026-03-04"?date.iso?string("EEE, d MMM yyyy")}',
    '04.03.2026 Wed, 4 Mar 2026',
  ],
  [
    '${"2026-03-04T05:06:07Z"?datetime.iso?iso_utc} ${"2026-03-04T05:06:07.089+02:00"?datetime.iso?iso_utc_ms}',
    '2026-03-04T05:06:07Z 2026-03-04T03:06:07.089Z',
  ],
  [
    '${1000?number_to_datetime?iso_utc} ${1772600767000?number_to_datetime?long?c}',
    '1970-01-01T00:00:01Z 1772600767000',
  ],
  [
    '${"05:06"?time("HH:mm")?string("h:mm a")} ${"2026-03-04 05:06"?datetime("yyyy-MM-dd HH:mm")?date?string("yyyy")}',
    '5:06 AM 2026',
  ],
  [
    '${"2026-03-04"?date.iso} ${("2026-03-04"?date.iso < "2026-03-05"?date.iso)?c} ${"2026-03-04"?date.iso?string.iso}',
    'Mar 4, 2026 true 2026-03-04',
  ],
  ['<#setting date_format="dd/MM/yyyy">${"04/03/2026"?date}', '04/03/2026'],
  [
    '${"2026-03-04 05:06:07"?datetime("yyyy-MM-dd HH:mm:ss")} ${"2026-03-04 05:06"?datetime("yyyy-MM-dd HH:mm")?string.short}',
    'Mar 4, 2026, 5:06:07 AM 3/4/26, 5:06 AM',
  ],
  // Sequences.
  ['${xs?first} ${xs?last} ${xs?size} ${xs?reverse?join("")} ${[]?first!"none"}', 'b a 3 aCb none'],
  ['${xs?sort?join(",")} ${ns?sort?join(",")} ${ns?min} ${ns?max} ${[]?max!"none"}', 'a,b,C 9,10,100 9 100 none'],
  ['${people?sort_by("name")?map(p -> p.name)?join(",")} ${people?sort_by(["a", "b"])[0].name}', 'Ann,Bob Ann'],
  ['${xs?join(", ", "none", ".")} ${[]?join(",", "none")} ${[1, 2]?join("")}', 'b, C, a. none 12'],
  [
    '${xs?seq_contains("a")?c} ${xs?seq_contains(1)?c} ${ns?seq_index_of(100)} ${xs?seq_last_index_of("z")}',
    'true false 2 -1',
  ],
  ['<#list (1..5)?chunk(2, 0) as row>${row?join(",")};</#list>', '1,2;3,4;5,0;'],
  [
    '${(1..6)?filter(x -> x % 2 == 0)?join(",")} ${(1..6)?take_while(x -> x < 3)?join(",")} ${(1..6)?drop_while(x -> x < 5)?join(",")}',
    '2,4,6 1,2 5,6',
  ],
  ['<#function d x><#return x * 2></#function>${ns?map(d)?join(",")}', '20,18,200'],
  // Hashes.
  ['${h?keys?join(",")} ${h?values?join(",")} ${h?size}', 'x,y 1,2 2'],
  // Types.
  [
    '${s?is_string?c} ${1?is_number?c} ${true?is_boolean?c} ${h?is_hash?c} ${h?is_hash_ex?c} ${xs?is_sequence?c}',
    'true true true true true true',
  ],
  [
    '${xs?is_hash?c} ${h?is_sequence?c} ${s?is_number?c} ${.now?is_date?c} ${xs?is_enumerable?c} ${xs?isIndexable?c}',
    'false false false true true true',
  ],
  [
    '<#macro m></#macro><#function f></#function>${m?is_macro?c} ${m?is_directive?c} ${f?is_method?c} ${s?is_macro?c}',
    'true true true false',
  ],
  [
    '${s?is_node?c} ${s?has_content?c} ${(null)?has_content?c} ${null?default("d")} [${missing?if_exists}]',
    'false true false d []',
  ],
]
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: templates

for (const [template, output] of ROWS) {
  test(`${template} is ${output}`, () => {
    assert.equal(rendered(template, DATA), output)
  })
}

test('texts of several pieces are changed as short ones are', () => {
  const long = `${'ab '.repeat(21_845)}c\u{1f600}d & ${'"x"\n\n '.repeat(30_000)}end`
  const data = JSON.stringify({ long })
  const made = (template: string) => rendered(template, data, { characters: 10_000_000 })
  assert.equal(made(`\${long?json_string}`), JSON.stringify(long).slice(1, -1))
  assert.equal(made(`\${long?url}`), encodeURIComponent(long))
  assert.equal(made(`\${long?xml}`), long.replaceAll('&', '&amp;').replaceAll('"', '&quot;'))
  assert.equal(
    made(`\${long?capitalize}`),
    long.replaceAll('ab', 'Ab').replace('c\u{1f600}', 'C\u{1f600}').replace('end', 'End'),
  )
  assert.equal(made(`\${long?replace("b ", "--")}`), long.replaceAll('b ', '--'))
  assert.equal(made(`<#compress>  \${long} </#compress>`), long.replaceAll('\n\n ', '\n'))
})

test('a number that a double does not hold is calculated with', () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: template
  assert.equal(rendered('<#assign m = n><#assign m -= n>${m}', '{"n": 12345678901234567890}'), '0')
})

test('a number that a double does not hold is printed with its digits', () => {
  const data = '{"n": 12345678901234567890, "f": 0.12345678901234567890123, "e": 1e999}'
  // biome-ignore lint/suspicious/noTemplateCurlyInString: template
  const template = '${n} ${n?c} ${f?c} ${(n > 5)?c} ${n?is_number?c} ${e?c} ${n?number?c}'
  assert.equal(
    rendered(template, data),
    '12,345,678,901,234,567,890 12345678901234567890 0.1234567890123457 true true Infinity 12345678901234567890',
  )
})

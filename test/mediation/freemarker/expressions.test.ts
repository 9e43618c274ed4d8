/** Expressions of templates, by the chapters of FreeMarker's manual (2.3.30). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rendered } from './rendered.ts'

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: templates

const DATA = JSON.stringify({
  n: 5,
  big: 1234567.891,
  half: 0.5,
  no: false,
  yes: true,
  nothing: null,
  text: 'aBc',
  empty: '',
  list: ['b', 'a', 'c'],
  numbers: [3, 1, 2],
  none: [],
  user: { name: 'Jo', 'full name': 'Jo Doe', tags: ['x', 'y'], address: { city: 'Oslo' } },
  people: [
    { name: 'Ann', age: 30 },
    { name: 'Bob', age: 20 },
  ],
})

/** Chapter of the manual, template, output. */
const ROWS: readonly (readonly [chapter: string, template: string, output: string])[] = [
  // Specify values directly.
  ['strings', '${"a\\"b\\\\c\\n\\x41"}', 'a"b\\c\nA'],
  ['strings', '${\'it is "x"\'}', 'it is "x"'],
  ['strings', '${"$\\{n}"} ${"\\{${n}"}', '${n} {5'],
  ['special variables', '<#assign z = 1>${.vars["text"]}${.globals["z"]}${.main.z}${.main.text!"-"}', 'aBc11-'],
  ['special variables', '${.vars?keys?seq_contains("user")?c}<#list none + ["q"] as x>${.vars["x"]}</#list>', 'trueq'],
  ['raw strings', '${r"\\d ${x}"}', '\\d ${x}'],
  ['numbers', '${1} ${0.5} ${1000} ${-3}', '1 0.5 1,000 -3'],
  ['booleans', '${true?c} ${false?string}', 'true false'],
  ['sequences', '${["a", n, [1]][2][0]} ${[]?size}', '1 0'],
  [
    'ranges',
    '${(1..4)?join(" ")} ${(4..1)?join(" ")} ${(1..<4)?join(" ")} ${(1..!4)?join(" ")}',
    '1 2 3 4 4 3 2 1 1 2 3 1 2 3',
  ],
  ['ranges', '${(3..*2)?join(" ")} ${(3..*-2)?join(" ")} ${(1..*0)?size}', '3 4 3 2 0'],
  ['hashes', '${{"a": 1, "b": n}.b} ${{"a": 1}["a"]} ${{}?size}', '5 1 0'],
  // Retrieve variables.
  ['top-level variables', '${text}', 'aBc'],
  ['hash members', '${user.name} ${user["full name"]} ${user["na" + "me"]}', 'Jo Jo Doe Jo'],
  ['sequence items', '${list[0]} ${user.tags[1]} ${people[1].name}', 'b y Bob'],
  ['special variables', '${.now?is_datetime?c} ${.data_model.text} ${.locale} ${.version}', 'true aBc en_US 2.3.30'],
  // String operations.
  ['interpolation in strings', '${"Hello ${user.name}, ${n + 1}!"}', 'Hello Jo, 6!'],
  ['concatenation', '${"a" + text + n + 1000}', 'aaBc51,000'],
  ['string items', '${text[0]}${text[2]}', 'ac'],
  [
    'string slicing',
    '${"ABCDEF"[2..3]} ${"ABCDEF"[2..<4]} ${"ABCDEF"[2..*3]} ${"ABCDEF"[2..*100]} ${"ABCDEF"[2..]}',
    'CD CD CDE CDEF CDEF',
  ],
  // Sequence and hash operations.
  ['sequence concatenation', '${(list + ["z"])?join(",")}', 'b,a,c,z'],
  [
    'sequence slicing',
    '${list[1..2]?join(",")} ${list[2..0]?join(",")} ${list[3..]?size} ${list[1..*5]?join(",")}',
    'a,c c,a,b 0 a,c',
  ],
  [
    'hash concatenation',
    '${({"a": 1, "b": 2} + {"b": 3}).b} ${(user + {"x": 1})?keys?join(",")}',
    '3 name,full name,tags,address,x',
  ],
  // Arithmetical calculations: as decimals.
  ['arithmetics', '${n * n - 2} ${n / 2} ${12 % 10} ${12.9 % 5.9} ${-n} ${+n}', '23 2.5 2 2 -5 5'],
  ['arithmetics', '${(0.1 + 0.2 == 0.3)?c}', 'true'],
  ['arithmetics', '${(1 / 3)?c} ${1 / 3} ${(2 / 3)?c}', '0.333333333333 0.333 0.666666666667'],
  // Comparison.
  [
    'comparison',
    '${(n == 5)?c} ${(n = 5)?c} ${(n != 5)?c} ${(text == "aBc")?c} ${(yes != no)?c}',
    'true true false true true',
  ],
  [
    'comparison',
    '${(n > 4)?c} ${(n >= 5)?c} ${(n gt 5)?c} ${(n gte 5)?c} ${(n lt 5)?c} ${(n lte 5)?c}',
    'true true false true false true',
  ],
  ['comparison', '<#if n gt 4>a</#if><#if (n > 4)>b</#if><#if n &gt;= 5>c</#if><#if n < 6>d</#if>', 'abcd'],
  // Logical operations.
  [
    'logical operations',
    '${(yes && !no)?c} ${(no || yes)?c} ${(yes and no)?c} ${(no or no)?c} ${(yes &amp;&amp; yes)?c}',
    'true true false false true',
  ],
  ['logical operations', '${(no && missing)?c} ${(yes || missing)?c}', 'false true'],
  // Handling missing values.
  ['default value', '${missing!"x"} ${missing!}. ${nothing!"null"} ${user.age!n} ${text!"y"}', 'x . null 5 aBc'],
  ['default value', '${(missing.deeply.lost)!"x"} ${(user.address.city)!"y"} ${user.address.zip!"z"}', 'x Oslo z'],
  ['default value', '${missing!text + "d"} ${(missing!text) + "d"}', 'aBcd aBcd'],
  ['default value', '${missing!other!"z"} <#list missing![] as x>x</#list>${(missing!)?size}', 'z 0'],
  ['default value', '${missing ! "x"}|${user.name ! "x"}', 'x|Jo'],
  ['missing value test', '${missing???c}', 'false'],
  [
    'missing value test',
    '${(user.name??)?c} ${(missing.deep)???c} ${nothing???c} ${user.address.zip???string("y", "n")}',
    'true false false n',
  ],
  ['missing value test', '<#if user.name?? && !missing??>yes</#if>', 'yes'],
  [
    'existence built-ins',
    '${missing?default("d")} ${empty?has_content?c} ${none?has_content?c} ${list?has_content?c} ${missing?exists?c}',
    'd false false true false',
  ],
  // Precedence.
  ['precedence', '${1 + 2 * 3} ${(1 + 2) * 3} ${10 - 2 - 3} ${-n + 1} ${(1 + 1..2 + 1)?join(",")}', '7 9 5 -4 2,3'],
  ['precedence', '${(!no && n == 5 || no)?c} ${(1 + 1 > 1)?c} ${(n > 1 == yes)?c}', 'true true true'],
  // Method and function calls, lambdas.
  [
    'lambdas',
    '${numbers?filter(x -> x > 1)?join(",")} ${people?map(p -> p.name)?join(",")} ${numbers?map((x) -> x * n)?join(",")}',
    '3,2 Ann,Bob 15,5,10',
  ],
  // White space and comments in expressions.
  ['white space', '${ user\n. name }|${ list [ 0 ] }|${<#-- c -->text}', 'Jo|b|aBc'],
  // Names of JavaScript are ordinary names.
  ['names', '${(constructor)!"-"}${(user.constructor)!"-"}${(user.__proto__)!"-"}${(user["toString"])!"-"}', '----'],
]

for (const [chapter, template, output] of ROWS) {
  test(`${chapter}: ${template} is ${output}`, () => {
    assert.equal(rendered(template, DATA), output)
  })
}
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: templates

test('a member of the data may have any name', () => {
  const data = '{"user": {"__proto__": {"a": 1}, "constructor": "c", "hasOwnProperty": 2}}'
  const names = '__proto__ constructor hasOwnProperty'.split(' ')
  const template = names.map(name => `\${user["${name}"]?is_hash?c}`).join(' ')
  assert.equal(rendered(template, data), 'true false false')
})

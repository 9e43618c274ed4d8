import assert from 'node:assert/strict'
import { test } from 'node:test'
import { functionsOf, scan } from './scan.ts'

/** Title, source, the source with strings and comments blanked, and the source with comments blanked. */
const SCANNED = [
  ['comment to the end of the line', 'a // b\nc', 'a     \nc', 'a     \nc'],
  ['comment at the end of the file', 'a // b', 'a     ', 'a     '],
  ['block comment', 'a /* b\n*/ c', 'a     \n   c', 'a     \n   c'],
  ['string', "a('b//c')", "a('    ')", "a('b//c')"],
  ['quote in a string', "'a\\'b' + c", "'    ' + c", "'a\\'b' + c"],
  ['quote of the other kind', `"it's" + a`, `"    " + a`, `"it's" + a`],
  ['template', '`a b` + c', '`   ` + c', '`a b` + c'],
  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: source text
  ['expression in a template', '`a ${b} c` + d', '`  ${b}  ` + d', '`a ${b} c` + d'],
  ['template in a template', '`a ${`b ${c} d`} e` + f', '`  ${`  ${c}  `}  ` + f', '`a ${`b ${c} d`} e` + f'],
  ['object in a template', '`${f({ a: 1 })} b` + c', '`${f({ a: 1 })}  ` + c', '`${f({ a: 1 })} b` + c'],
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: source text
  ['regular expression', "a = /['/*]{2}/.test(b)", 'a = /        /.test(b)', "a = /['/*]{2}/.test(b)"],
  ['slash in a class', 'f(/[/]/, a)', 'f(/   /, a)', 'f(/[/]/, a)'],
  ['regular expression after return', 'return /"/', 'return / /', 'return /"/'],
  ['division', "a / b + 'c' / d", "a / b + ' ' / d", "a / b + 'c' / d"],
  ['division by a call', "f(a) / 2 + 'b/'", "f(a) / 2 + '  '", "f(a) / 2 + 'b/'"],
] as const
for (const [title, text, code, uncommented] of SCANNED) {
  test(`scan: ${title}`, () => assert.deepEqual(scan(text), { code, uncommented }))
}

/** Source, and its functions with their numbers of lines, inner ones first. */
const FUNCTIONS = [
  ['function f() {\n}', ['f 2']],
  ['export async function f<T>(a: T): Promise<T> {\n  if (a) {\n  }\n}', ['f 4']],
  [
    'class A {\n  #m(a = g()): void {\n  }\n  get x() {\n  }\n  constructor() {\n  }\n}',
    ['#m 2', 'x 2', 'constructor 2'],
  ],
  ['const a = b => {\n}', [' 2']],
  ["test('a', async t => {\n  for (const b of c) {\n  }\n})", ['test 4']],
  ["test('a', () => {\n})", ['test 2']],
  ['while (a) {\n}\nswitch (b) {\n}\ntry {\n} catch (c) {\n}', []],
  ['const a = { b: { c: 1 } }\ninterface D {\n  e: F\n}', []],
] as const
for (const [text, expected] of FUNCTIONS) {
  test(`functions of ${JSON.stringify(text)}`, () => {
    assert.deepEqual(
      functionsOf(scan(text)).map(({ name, lines }) => `${name} ${lines}`),
      expected,
    )
  })
}

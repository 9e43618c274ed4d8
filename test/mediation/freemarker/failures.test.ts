/** Templates that cannot go on, and templates or data that are hostile: a failure that names the place, or a limit. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LimitReached } from '../../../src/mediation/flow-limits.ts'
import { TemplateFailure } from '../../../src/mediation/freemarker/template-error.ts'
import { MediationFault } from '../../../src/mediation/mediation-fault.ts'
import { element as e } from '../../../src/mediation/xml-tree.ts'
import { rendered, renderedOf } from './rendered.ts'

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: templates

const SECRET = 'do-not-tell'
const DATA = JSON.stringify({ s: SECRET, n: 5, xs: [SECRET, null], h: { [SECRET]: SECRET }, t: true, none: [] })

/** Template, and the failure behind `line `. */
const ROWS: readonly (readonly [template: string, failure: string])[] = [
  ['a\n\n${h.missing.x}', '3 of the template: h.missing is missing'],
  ['${missing}', '1 of the template: missing is missing'],
  ['${xs[1]}', '1 of the template: xs[1] is missing'],
  ['${xs[7]}', '1 of the template: xs[7] is missing'],
  ['${missing.deep!"x"}', '1 of the template: missing is missing'],
  ['<#if missing>x</#if>', '1 of the template: missing is missing'],
  ['${1 + missing}', '1 of the template: missing is missing'],
  ['${t}', '1 of the template: t is a boolean, which is not printed without ?c or ?string'],
  ['${h}', '1 of the template: h is a hash, which is not printed'],
  ['${xs}', '1 of the template: xs is a sequence, which is not printed'],
  ['${s.x}', '1 of the template: s is a text, which has no members'],
  ['${n[0]}', '1 of the template: n is a number, which has no items'],
  ['${s["x"]}', '1 of the template: s is a text, which has no members'],
  ['${s[100]}', '1 of the template: s has no character 100'],
  ['${s[5..100]}', '1 of the template: s is shorter than the range'],
  ['${xs[0..5]?size}', '1 of the template: xs is shorter than the range'],
  ['<#if s>x</#if>', '1 of the template: s is a text where a boolean is expected'],
  ['${s * 2}', '1 of the template: s is a text where a number is expected'],
  ['${1 / 0}', '1 of the template: 1 / 0 divides by zero'],
  ['${(s == n)?c}', '1 of the template: s == n compares a text with a number'],
  ['${(s < "a")?c}', '1 of the template: s < "a" compares a text with a text'],
  ['<#list n as x>x</#list>', '1 of the template: n is a number where a sequence is expected'],
  ['<#list xs as k, v>x</#list>', '1 of the template: xs is no hash, but the list has two names'],
  ['<#list h as x>x</#list>', '1 of the template: h is a hash, whose list has two names'],
  ['<#list xs><#items as k, v>x</#items></#list>', '1 of the template: <#items as k, v> is no hash, but the list'],
  ['${s?number}', '1 of the template: s?number is no number'],
  ['${s?boolean}', '1 of the template: s?boolean is neither true nor false'],
  ['${s?eval_json}', '1 of the template: s?eval_json is no JSON'],
  ['${s?date("yyyy")}', '1 of the template: s?date("yyyy") is no date of its format'],
  ['${s?keys}', '1 of the template: s is a text where a hash is expected'],
  ['${n?size}', '1 of the template: n is a number where a sequence is expected'],
  ['${xs?join(",")?replace(s, "[", "r")?replace("(", "", xs[0])}', '1 of the template: '],
  [
    '${s?replace(s + "(", "", "r")}',
    '1 of the template: s?replace(s + "(", "", "r") has a pattern that is not a valid regular',
  ],
  ['${n?string(s)}', '1 of the template: n?string(s) has a number format that is not supported'],
  ['${[1, "a"]?sort?size}', '1 of the template: [1, "a"]?sort has items of several kinds'],
  ['${n?index}', '1 of the template: n is no loop variable, whose ?index is known'],
  ['${s()}', '1 of the template: s is a text, which is no function'],
  ['<@s/>', '1 of the template: s is a text, which is no macro'],
  ['<#macro m a></#macro><@m/>', '1 of the template: <#macro m a> has no value for its parameter a'],
  ['<#macro m a></#macro><@m 1 2/>', '1 of the template: <#macro m a> takes 1 arguments and not 2'],
  ['<#macro m a></#macro><@m b=1/>', '1 of the template: <@m b=1/> gives the parameter b, which the macro has not'],
  ['<#assign q += 1>', '1 of the template: <#assign q += 1> has no value of q before it'],
  ['\n<#stop s>', '2 of the template: <#stop s> stops the template'],
]

for (const [template, failure] of ROWS) {
  test(`${JSON.stringify(template)} fails: ${failure}`, () => {
    assert.throws(
      () => rendered(template, DATA),
      (error: Error) => {
        assert.ok(error instanceof TemplateFailure, String(error))
        assert.ok(error.message.startsWith(`line ${failure}`), error.message)
        assert.ok(!error.message.includes(SECRET), error.message)
        return true
      },
    )
  })
}

test('nodes of XML that are no single text are not printed', () => {
  const doc = e('a', [e('b', ['1']), e('b', ['2'])])
  for (const [template, failure] of [
    ['${doc.a}', 'doc.a is a node of XML (element), which is not printed'],
    ['${doc}', 'doc is a node of XML (document), which is not printed'],
    ['${doc.a.b}', 'doc.a.b is 2 nodes of XML, which is not printed'],
    ['${doc.a.c}', 'doc.a.c is 0 nodes of XML, which is not printed'],
    ['${doc["a/b"]!"x"}', 'doc is a node of XML (document), and its key is no name: XPath is not supported'],
    ['${doc.a.b["@x=1"]!"x"}', 'doc.a.b is 2 nodes of XML, and its key is no name: XPath is not supported'],
  ] as const) {
    assert.throws(() => renderedOf(template, doc), { message: `line 1 of the template: ${failure}` })
  }
})

test('recover writes nothing of what failed, and knows the failure', () => {
  const template = 'a<#attempt>b${missing}c<#recover>[${.error}]</#attempt>d'
  assert.equal(rendered(template), 'a[line 1 of the template: missing is missing]d')
})

/** Template, code of the fault. */
const LIMITED: readonly (readonly [template: string, code: number])[] = [
  ['<#list 1..1000000 as i>0123456789</#list>', 102532],
  ['<#assign s = "0123456789"><#list 1..100 as i><#assign s = s + s></#list>', 102532],
  ['<#assign s = "0123456789"><#list 1..100 as i><#assign s>${s}${s}</#assign></#list>', 102532],
  ['<#assign s = "aaaaaaaaaa"><#list 1..100 as i><#assign s = s?replace("a", "aaaaaaaaaa")></#list>', 102532],
  ['<#assign xs = [1, 2]><#list 1..100 as i><#assign xs = xs + xs></#list>', 102532],
  ['${(1..)?size}${(1..)?join("")}', 102532],
  ['${(1..1000000000)?map(x -> x)?size}', 102532],
  ['${"a"?left_pad(100000000)?length}', 102532],
  ['${"a"?right_pad(100000000, "xy")?length}', 102532],
  ['<#assign s = "a,"?right_pad(100000, "a,")>${s?split(",")?size}', 102532],
]

for (const [template, code] of LIMITED) {
  test(`${template} ends with ${code}`, () => {
    assert.throws(
      () => rendered(template),
      (error: Error) => error instanceof MediationFault && error.raised.code === code,
    )
  })
}

test('a template that computes without an end reaches the limit of flows, also within attempt', () => {
  for (const template of ['<#attempt><#list 1.. as i></#list><#recover>x</#attempt>']) {
    assert.throws(
      () => rendered(template),
      (error: Error) => error instanceof LimitReached && error.fault.code === 102542,
    )
  }
})

test('a template ends when nobody waits for it', () => {
  assert.throws(() => rendered('<#list 1.. as i></#list>', '{}', { isOver: () => true }), LimitReached)
})

test('calls that nest without an end fail', () => {
  for (const template of [
    '<#macro m><@m/></#macro><@m/>',
    '<#function f x><#return f(x)></#function>${f(1)}',
    '<#macro m><@n><#nested></@n></#macro><#macro n><@m><#nested></@m></#macro><@m>x</@m>',
  ]) {
    assert.throws(() => rendered(template), { name: 'TemplateFailure', message: /more than 100 calls/ })
  }
})

test('tags within calls that fill the stack fail', () => {
  const [open, close] = ['<#list 1..1 as i><#if true>'.repeat(45), '</#if></#list>'.repeat(45)]
  const template = `<#macro m>${open}<@m/>${close}</#macro><@m/>`
  assert.throws(() => rendered(template), { name: 'TemplateFailure', message: 'the template nests too deep' })
})

test('a number of a client is printed in linear time', () => {
  const text = rendered('${n}', `{"n":1${'7'.repeat(300_000)}}`)
  assert.equal(text, `1${',777'.repeat(100_000)}`)
})

test('members of a large object are read without a look at all of them', () => {
  const names = Array.from({ length: 100_000 }, (_, at) => `k${at}`)
  const json = JSON.stringify({ h: Object.fromEntries(names.map(name => [name, 1])) })
  const template = '<#assign n = 0><#list h?keys as k><#assign n += h[k]></#list>${n}'
  assert.equal(rendered(template, json, { items: 200_000 }), '100,000')
})

for (const built of ['h?size', 'h?has_content?c']) {
  test(`${built} counts the names of a large object`, () => {
    const names = Array.from({ length: 20_000 }, (_, at) => `k${at}`)
    const json = JSON.stringify({ h: Object.fromEntries(names.map(name => [name, 1])) })
    assert.throws(() => rendered(`\${${built}}`, json, { isOver: () => true }), LimitReached)
  })
}

test('a regular expression takes a text of 8,192 characters in linear time, and no longer one', () => {
  const template = (length: number) => `\${"a"?right_pad(${length}, "a")?replace("(a*)*b", "", "r")?length}`
  assert.equal(rendered(template(8192)), '8,192')
  assert.throws(() => rendered(template(8193)), /has a text of more than 8192 characters for a pattern/)
})
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: templates

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JsonObject, readJson } from '../../../src/mounted/healthcare/json-text.ts'
import { narrativeFaults } from '../../../src/mounted/healthcare/narrative.ts'
import { validateResource } from '../../../src/mounted/healthcare/validation.ts'
import { serviceWith } from './service-example.ts'

const SERVICE = serviceWith({ id: 'a', meta: { versionId: '1' } })
const URL = 'https://gw.example/healthcare/HealthcareService/a'

/** Elements of a Bundle, and the rules and places of its errors; none: it is valid. */
const BUNDLES: readonly (readonly [title: string, bundle: JsonObject, errors: readonly string[]])[] = [
  [
    'a searchset',
    {
      type: 'searchset',
      total: 1,
      link: [{ relation: 'self', url: URL }],
      entry: [{ fullUrl: URL, resource: SERVICE, search: { mode: 'match', score: 1 } }],
    },
    [],
  ],
  ['a searchset without a match', { type: 'searchset', total: 0 }, []],
  [
    'a transaction',
    {
      type: 'transaction',
      entry: [
        {
          fullUrl: 'urn:uuid:c757873d-ec9a-4326-a141-556f43239520',
          resource: SERVICE,
          request: { method: 'POST', url: 'HealthcareService', ifNoneExist: 'name=x' },
        },
      ],
    },
    [],
  ],
  [
    'a batch of a deletion',
    { type: 'batch', entry: [{ request: { method: 'DELETE', url: 'HealthcareService/a', ifMatch: 'W/"1"' } }] },
    [],
  ],
  [
    'a response',
    {
      type: 'transaction-response',
      entry: [
        { response: { status: '201 Created', location: URL, etag: 'W/"1"', lastModified: '2024-01-01T00:00:00Z' } },
      ],
    },
    [],
  ],
  [
    'a history',
    {
      type: 'history',
      total: 1,
      entry: [
        {
          fullUrl: URL,
          resource: SERVICE,
          request: { method: 'PUT', url: 'HealthcareService/a' },
          response: { status: '200' },
        },
      ],
    },
    [],
  ],
  [
    'two versions in a history',
    {
      type: 'history',
      entry: [1, 2].map(() => ({
        fullUrl: URL,
        resource: SERVICE,
        request: { method: 'PUT', url: 'a' },
        response: { status: '200' },
      })),
    },
    [],
  ],
  [
    'a document',
    {
      type: 'document',
      identifier: { system: 'urn:x', value: '1' },
      timestamp: '2024-01-01T00:00:00Z',
      entry: [
        {
          fullUrl: 'urn:uuid:c757873d-ec9a-4326-a141-556f43239520',
          resource: {
            resourceType: 'Composition',
            status: 'final',
            type: { text: 'x' },
            date: '2024',
            author: [{ display: 'x' }],
            title: 'x',
            text: SERVICE.text,
          },
        },
      ],
    },
    [],
  ],
  ['a Bundle without type', { total: 1 }, ['bdl-1 Bundle', 'missing-element Bundle.type']],
  ['a total in a collection (bdl-1)', { type: 'collection', total: 1 }, ['bdl-1 Bundle']],
  [
    'entry.search in a collection (bdl-2)',
    { type: 'collection', entry: [{ resource: SERVICE, search: { mode: 'match' } }] },
    ['bdl-2 Bundle'],
  ],
  ['a transaction without request (bdl-3)', { type: 'transaction', entry: [{ resource: SERVICE }] }, ['bdl-3 Bundle']],
  [
    'a request in a collection (bdl-3)',
    { type: 'collection', entry: [{ resource: SERVICE, request: { method: 'GET', url: 'x' } }] },
    ['bdl-3 Bundle'],
  ],
  ['a response without response (bdl-4)', { type: 'batch-response', entry: [{ resource: SERVICE }] }, ['bdl-4 Bundle']],
  [
    'a response in a searchset (bdl-4)',
    { type: 'searchset', entry: [{ resource: SERVICE, response: { status: '200' } }] },
    ['bdl-4 Bundle'],
  ],
  ['an entry with nothing in it (bdl-5)', { type: 'collection', entry: [{ fullUrl: URL }] }, ['bdl-5 Bundle.entry[0]']],
  [
    'two entries with one fullUrl (bdl-7)',
    {
      type: 'collection',
      entry: [
        { fullUrl: URL, resource: SERVICE },
        { fullUrl: URL, resource: SERVICE },
      ],
    },
    ['bdl-7 Bundle'],
  ],
  [
    'a fullUrl with a version (bdl-8)',
    { type: 'collection', entry: [{ fullUrl: `${URL}/_history/1` }] },
    ['bdl-5 Bundle.entry[0]', 'bdl-8 Bundle.entry[0]'],
  ],
  [
    'a fullUrl that is not absolute',
    { type: 'collection', entry: [{ fullUrl: 'HealthcareService/a', resource: SERVICE }] },
    ['full-url Bundle.entry[0].fullUrl'],
  ],
  [
    'a fullUrl with another id',
    { type: 'collection', entry: [{ fullUrl: 'http://a/HealthcareService/b', resource: SERVICE }] },
    ['full-url Bundle.entry[0].fullUrl'],
  ],
  [
    'an unknown method',
    { type: 'batch', entry: [{ request: { method: 'TRACE', url: 'x' } }] },
    ['code Bundle.entry[0].request.method'],
  ],
  [
    'a request without url',
    { type: 'batch', entry: [{ request: { method: 'GET' } }] },
    ['missing-element Bundle.entry[0].request.url'],
  ],
  [
    'a document without identifier, time and Composition (bdl-9 to bdl-11)',
    { type: 'document', entry: [{ resource: SERVICE }] },
    ['bdl-10 Bundle', 'bdl-11 Bundle', 'bdl-9 Bundle'],
  ],
  ['a message without MessageHeader (bdl-12)', { type: 'message', entry: [{ resource: SERVICE }] }, ['bdl-12 Bundle']],
  [
    'a fault in a resource of an entry',
    { type: 'collection', entry: [{ resource: serviceWith({ x: 1, location: [{ reference: '#a' }] }) }] },
    ['ref-1 Bundle.entry[0].resource.location[0].reference', 'unknown-element Bundle.entry[0].resource.x'],
  ],
]

for (const [title, elements, errors] of BUNDLES) {
  test(`${title} ${errors.length === 0 ? 'is valid' : 'is refused'}`, () => {
    const issues = validateResource({ resourceType: 'Bundle', ...elements })
    assert.deepEqual(issues.map(({ detail, expression }) => `${detail} ${expression}`).toSorted(), errors)
  })
}

test('a parameter has one of value, resource and part (inv-1)', () => {
  const errorsOf = (parameter: JsonObject): readonly (string | undefined)[] =>
    validateResource({ resourceType: 'Parameters', parameter: [{ name: 'a', ...parameter }] }).map(
      ({ detail }) => detail,
    )
  assert.deepEqual(errorsOf({ valueString: 'x' }), [])
  assert.deepEqual(errorsOf({ resource: SERVICE }), [])
  assert.deepEqual(errorsOf({ part: [{ name: 'b', valueCode: 'x' }] }), [])
  assert.deepEqual(errorsOf({ valueString: 'x', part: [{ name: 'b', valueCode: 'x' }] }), ['inv-1'])
  assert.deepEqual(errorsOf({}), ['inv-1'])
})

const div = (content: string, attributes = ''): string =>
  `<div xmlns="http://www.w3.org/1999/xhtml"${attributes}>${content}</div>`

for (const [title, xhtml] of [
  [
    'formatted text',
    div('<p>A <b>bold</b> <a href="http://a/b">link</a></p><table><tr><td colspan="2">x</td></tr></table>'),
  ],
  ['an image alone', div('<img src="photo.png" alt=""/>')],
  ['an image that carries its data', div('<img src="data:image/png;base64,AAAA" alt="x"/>')],
  ['styles within', div('x', ' style="color: red; font-weight: bold" class="a" xml:lang="en" lang="en"')],
  ['an image in a style', div('<p style="background-image: url(tbl_bck1.png)">x</p>')],
  ['entities', div('a &amp; b &lt; c &#160; &#xe9; &nbsp;')],
  ['a comment', div('x<!-- y -->')],
] as const) {
  test(`a narrative with ${title} is safe`, () => {
    assert.deepEqual(
      narrativeFaults(xhtml).filter(({ diagnostics }) => !diagnostics.includes('"xmlns:h"')),
      [],
    )
  })
}

for (const [title, xhtml, key] of [
  ['script', div('a<script>alert(1)</script>'), 'txt-1'],
  ['a script in upper case', div('a<SCRIPT>alert(1)</SCRIPT>'), 'txt-1'],
  ['a form', div('<form><input name="a"/></form>x'), 'txt-1'],
  ['an iframe', div('x<iframe src="http://a"/>'), 'txt-1'],
  ['an object', div('x<object data="a"/>'), 'txt-1'],
  ['a style element', div('x<style>p { color: red }</style>'), 'txt-1'],
  ['a style sheet', div('x<link rel="stylesheet" href="a.css"/>'), 'txt-1'],
  ['a base', div('x<base href="http://a"/>'), 'txt-1'],
  ['SVG', div('x<svg xmlns="http://www.w3.org/2000/svg"><script>x</script></svg>'), 'txt-1'],
  ['an event handler', div('<b onclick="x()">a</b>'), 'txt-1'],
  ['an event handler at the root', div('a', ' onload="x()"'), 'txt-1'],
  ['a link that runs a script', div('<a href="javascript:x()">a</a>'), 'txt-1'],
  ['a link that hides a script', div('<a href=" java&#10;script:x()">a</a>'), 'txt-1'],
  ['a link with another document', div('<a href="data:text/html,x">a</a>'), 'txt-1'],
  ['an image of SVG', div('<img src="data:image/svg+xml,x"/>'), 'txt-1'],
  ['a style that runs a script', div('<p style="background: url(javascript:x())">x</p>'), 'txt-1'],
  ['a style that loads another', div('<p style="@import url(http://a)">x</p>'), 'txt-1'],
  ['a style that hides a script', div('<p style="background: url(j\\61vascript:x())">x</p>'), 'txt-1'],
  ['a style with a comment', div('<p style="u/**/rl(http://a)">x</p>'), 'txt-1'],
  ['a style of many open comments', div(`<p style="${'/* '.repeat(300_000)}">x</p>`), 'txt-1'],
  ['a style that runs', div('<p style="width: expression(x)">x</p>'), 'txt-1'],
  [
    'an attribute of another namespace',
    div('<a xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="x">a</a>'),
    'txt-1',
  ],
  ['65 levels', div(`${'<p>'.repeat(65)}x${'</p>'.repeat(65)}`), 'txt-1'],
  ['nothing in it', div(''), 'txt-2'],
  ['white space in it', div(' \n<p> </p>'), 'txt-2'],
  ['text that is no XML', 'just text', 'xhtml'],
  ['a tag that does not end', div('<p>x'), 'xhtml'],
  ['an attribute without quotes', div('<p class=a>x</p>'), 'xhtml'],
  ['another root', '<p xmlns="http://www.w3.org/1999/xhtml">x</p>', 'xhtml'],
  ['no namespace', '<div>x</div>', 'xhtml'],
  ['two roots', `${div('x')}${div('y')}`, 'xhtml'],
  ['a document type', `<!DOCTYPE div [<!ENTITY a "b">]>${div('&a;')}`, 'xhtml'],
  ['a processing instruction', div('<?php x ?>x'), 'xhtml'],
  ['an unknown entity', div('&unknown;'), 'xhtml'],
] as const) {
  test(`a narrative with ${title} is refused (${key})`, () => {
    assert.equal(narrativeFaults(xhtml)[0]?.key, key)
  })
}

test('a narrative of a megabyte is checked', () => {
  assert.deepEqual(narrativeFaults(div('<b>x</b>'.repeat(120_000))), [])
  assert.equal(narrativeFaults(div('<b onclick="x">x</b>'.repeat(50_000))).length, 10)
})

test('decimals of a resource keep their precision', () => {
  const text = '{"resourceType":"HealthcareService","extension":[{"url":"u","valueDecimal":1.00}]}'
  assert.ok(validateResource(readJson(text)).every(({ severity }) => severity === 'warning'))
})

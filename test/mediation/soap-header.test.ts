/** `<header>` in its default scope: header blocks of SOAP, and SOAPAction. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MediationFault } from '../../src/mediation/mediation-fault.ts'
import { bodyOf, firstOfBody } from '../../src/mediation/soap.ts'
import { element, selfContained, writeXml, type XmlElementNode } from '../../src/mediation/xml-tree.ts'
import { file, parseFile, run, testRefusals } from './test-sequences.ts'

const BODY = '<payloadFactory><format><r xmlns="">1</r></format></payloadFactory>'
const BLOCK = '<am:Key xmlns:am="http://example.org/am">a</am:Key>'

async function xmlAfter(steps: string): Promise<string> {
  const { payload } = (await run(BODY + steps)).message
  return payload?.kind === 'xml' ? writeXml(payload.root).replaceAll(' xmlns=""', '') : ''
}

const COMPLEX = '<am:Key xmlns:am="http://example.org/am"><am:Hello>World</am:Hello></am:Key>'
const ofProperty = '<header name="am:Key" expression="$ctx:p"/>'

/** Steps, and the Header with what comes before the Body; null: no Envelope. */
const ROWS: readonly (readonly [string, string | null])[] = [
  ['<header name="am:Key" value="a"/>', `<soapenv:Header>${BLOCK}</soapenv:Header>`],
  ['<header name="am:Key" expression="//r"/>', `<soapenv:Header>${BLOCK.replace('>a<', '>1<')}</soapenv:Header>`],
  ['<header name="am:Key" value="b"/><header name="am:Key" value="a"/>', `<soapenv:Header>${BLOCK}</soapenv:Header>`],
  ['<header name="am:Key" value="a"/><header name="am:Key" action="remove"/>', ''],
  ['<header name="am:Key" action="remove"/>', null],
  ['<header><am:Key>a</am:Key></header>', `<soapenv:Header>${BLOCK}</soapenv:Header>`],
  [
    '<header name="am:Key" value="a"/><header name="am:Other" value="b"/>',
    `<soapenv:Header>${BLOCK}${BLOCK.replaceAll('Key', 'Other').replace('>a<', '>b<')}</soapenv:Header>`,
  ],
  // An element of the same name is the block; another one with elements stands in it, one without is its text.
  [`<property name="p">${COMPLEX}</property>${ofProperty}`, `<soapenv:Header>${COMPLEX}</soapenv:Header>`],
  [
    `<property name="p"><am:Key>a</am:Key></property>${ofProperty}${ofProperty}`,
    `<soapenv:Header>${BLOCK}</soapenv:Header>`,
  ],
  [
    `<property name="p">${COMPLEX.replaceAll('am:Key', 'am:In')}</property>${ofProperty}`,
    `<soapenv:Header>${BLOCK.replace('>a<', `>${COMPLEX.replaceAll('am:Key', 'am:In')}<`)}</soapenv:Header>`,
  ],
  // A block without a namespace, as documented.
  ['<header name="symbol" expression="//r"/>', '<soapenv:Header><symbol>1</symbol></soapenv:Header>'],
  ['<header name="symbol" value="1"/><header name="symbol" action="remove"/>', ''],
]

for (const [steps, header] of ROWS) {
  test(`${steps} changes the header blocks`, async () => {
    const text = await xmlAfter(steps)
    const start = '<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/">'
    const expected =
      header === null ? '<r>1</r>' : `${start}${header}<soapenv:Body><r>1</r></soapenv:Body></soapenv:Envelope>`
    assert.equal(text, expected)
  })
}

test('an expression reads a header block', async () => {
  const steps = '<header name="am:Key" value="a"/><property name="it" expression="$header/am:Key"/>'
  assert.equal((await run(BODY + steps)).message.get('default', 'it'), 'a')
})

test('Action is the field SOAPAction', async () => {
  const { message } = await run('<header name="Action" value="urn:a"/>')
  assert.equal(message.get('transport', 'SOAPAction'), '"urn:a"')
  const removed = await run('<header name="Action" value="urn:a"/><header name="Action" action="remove"/>')
  assert.equal(removed.message.get('transport', 'SOAPAction'), undefined)
})

test('a header block without a namespace is a warning', async () => {
  const { warnings } = await parseFile(file('<header name="Security" value="1"/>'))
  const hint = 'write scope="transport" for a header field, or a declared prefix'
  assert.deepEqual(warnings, [`one.xml:1: header/name: is a header block of SOAP without a namespace (${hint})`])
})

testRefusals([
  ['<header name="a b" value="1"/>', 'header/name = a b: is no name of a header block'],
  ['<header name="xx:Security" value="1"/>', 'header/name = xx:Security: is no header of SOAP: it has no namespace'],
  ['<header name="ReplyTo" value="1"/>', 'header/name = ReplyTo: is of WS-Addressing, which is not supported'],
  ['<header action="remove"><am:x/></header>', 'header/action: has no effect with elements'],
  ['<header name="am:x" value="1"><am:x/></header>', 'am:x: is not an element of <header>'],
])

/** An Envelope with that many declarations, and elements in its Body. */
function crowded(declarations: number, elements: number): XmlElementNode {
  const attributes = Array.from({ length: declarations }, (_, at) => [`xmlns:n${at}`, 'urn:n'] as const)
  const children = Array.from({ length: elements }, () => element('n0:a', []))
  return element('e:Envelope', [element('e:Body', children)], attributes)
}

test('elements of a Body get its declarations; 100,000 copies are 102521', () => {
  assert.equal(bodyOf(crowded(100, 1000)).length, 1000)
  assert.equal(bodyOf(crowded(2, 1))[0]!.attributes.length, 2)
  assert.throws(
    () => bodyOf(crowded(1001, 100)),
    ({ raised }: MediationFault) => raised.code === 102521,
  )
  assert.equal(firstOfBody(crowded(2000, 2000))!.attributes.length, 2000)
})

test('an element that is moved gets the declarations that it uses and does not have', () => {
  const inner = element('p:b', [element('q:c', [])], [['xmlns:p', 'urn:inner']])
  const moved = selfContained(element('a', [inner, element('p:d', [])]), prefix => `urn:${prefix}`)
  assert.deepEqual(moved.attributes, [
    ['xmlns', 'urn:'],
    ['xmlns:q', 'urn:q'],
    ['xmlns:p', 'urn:p'],
  ])
})

/** Control flow of sequences: filter, switch, in, out, sequence, send, respond, drop. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { causes, testRefusals, file, parseFile, run } from './test-sequences.ts'

const mark = (name: string) => `<property name="${name}" value="x"/>`

async function marks(
  steps: string,
  properties: Readonly<Record<string, string | boolean | number>> = {},
): Promise<string> {
  const ran = await run(steps, { properties, others: { other: mark('o') } })
  assert.deepEqual(ran.reports, [])
  return [...'abcdo'].filter(name => ran.message.get('default', name) !== undefined).join('')
}

test('filter runs a branch, or its own steps, by a boolean', async () => {
  const branches = `<filter xpath="$ctx:p"><then>${mark('a')}</then><else>${mark('b')}</else></filter>${mark('c')}`
  assert.equal(await marks(branches, { p: 'yes' }), 'ac')
  assert.equal(await marks(branches, { p: '' }), 'bc')
  assert.equal(await marks(branches, { p: false }), 'bc')
  assert.equal(await marks(branches, { p: 0 }), 'bc')
  assert.equal(await marks(branches), 'bc')
  const own = `<filter xpath="$ctx:p">${mark('a')}${mark('b')}</filter>${mark('c')}`
  assert.equal(await marks(own, { p: 'yes' }), 'abc')
  assert.equal(await marks(own), 'c')
  assert.equal(await marks(`<filter xpath="$ctx:p"><else>${mark('b')}</else></filter>`, { p: 1 }), '')
})

test('filter runs a branch by a regular expression that matches the whole text', async () => {
  const filter = `<filter source="$ctx:p" regex="ab+"><then>${mark('a')}</then><else>${mark('b')}</else></filter>`
  assert.equal(await marks(filter, { p: 'abbb' }), 'a')
  assert.equal(await marks(filter, { p: 'xab' }), 'b')
  assert.equal(await marks(filter, { p: 'abx' }), 'b')
})

test('a branch of filter may be another sequence', async () => {
  const filter = '<filter xpath="$ctx:p"><then sequence="other"/><else sequence="other"/></filter>'
  assert.equal(await marks(filter, { p: 1 }), 'o')
  assert.equal(await marks(filter), 'o')
  assert.deepEqual((await parseFile(file(filter))).plan!.calls, ['other'])
})

test('switch runs the first case that matches, else the default', async () => {
  const cases = `<case regex="1.*">${mark('a')}</case><case regex="12">${mark('b')}</case>`
  const steps = `<switch source="$ctx:p">${cases}<default>${mark('c')}</default></switch>${mark('d')}`
  assert.equal(await marks(steps, { p: '12' }), 'ad')
  assert.equal(await marks(steps, { p: 12 }), 'ad')
  assert.equal(await marks(steps, { p: '2' }), 'cd')
  assert.equal(await marks(`<switch source="$ctx:p">${cases}</switch>${mark('d')}`, { p: '2' }), 'd')
})

test('in runs for requests, out for messages marked as responses', async () => {
  const steps = `<in>${mark('a')}</in><out>${mark('b')}</out>`
  assert.equal(await marks(steps), 'a')
  assert.equal(await marks(steps, { RESPONSE: 'true' }), 'b')
  assert.equal(await marks(steps, { RESPONSE: true }), 'b')
  assert.equal(await marks(steps, { RESPONSE: 'false' }), 'a')
})

/** Steps, outcome, and properties that were set. */
const ENDS: readonly (readonly [string, string, string])[] = [
  [mark('a'), 'ended', 'a'],
  [`${mark('a')}<send/>${mark('b')}`, 'sent', 'a'],
  [`${mark('a')}<respond/>${mark('b')}`, 'responded', 'a'],
  [`${mark('a')}<drop/>${mark('b')}`, 'dropped', 'a'],
  [`<in><filter xpath="true()"><then><send/></then></filter>${mark('a')}</in>${mark('b')}`, 'sent', ''],
  [`<switch source="1"><case regex="1"><drop/></case></switch>${mark('b')}`, 'dropped', ''],
  ['<sequence key="answers"/><drop/>', 'responded', ''],
  [`<sequence key="marks"/>${mark('a')}`, 'ended', 'ao'],
]

for (const [steps, outcome, marked] of ENDS) {
  test(`the outcome of ${steps} is ${outcome}`, async () => {
    const ran = await run(steps, { others: { answers: '<respond/>', marks: mark('o') } })
    assert.equal(ran.outcome, outcome)
    assert.equal([...'abo'].filter(name => ran.message.get('default', name) !== undefined).join(''), marked)
  })
}

test('recursion ends with an error after 100 sequences', async () => {
  for (const steps of [
    '<sequence key="one"/>',
    '<sequence key="one"/>'.repeat(50),
    '<sequence key="two"/>',
    '<filter xpath="true()"><then sequence="one"/></filter>',
  ]) {
    const ran = await run(`${steps}<send/>`, { others: { two: '<sequence key="one"/>' } })
    assert.equal(ran.outcome, 'failed')
    assert.deepEqual(causes(ran), ['entered more than 100 sequences'])
  }
})

test('a missing sequence is reported and skipped', async () => {
  const ran = await run('<sequence key="none"/><send/>')
  assert.deepEqual([ran.outcome, causes(ran)], ['sent', ['there is no such sequence']])
})

/** Step and its error. */
const REFUSED: readonly (readonly [string, string])[] = [
  ['<filter/>', 'filter/xpath: expected either xpath, or source and regex'],
  ['<filter xpath="1" regex="a"/>', 'filter/xpath: expected either xpath, or source and regex'],
  ['<filter source="1"/>', 'filter/regex: is missing'],
  ['<filter regex="1"/>', 'filter/source: is missing'],
  ['<filter xpath="1"><then/><then/></filter>', 'then: is repeated in <filter>'],
  ['<filter xpath="1"><then/><log/></filter>', 'log: is not an element of <filter>'],
  ['<filter xpath="1"><then a="b"/></filter>', 'then/a: is an unknown attribute'],
  ['<filter xpath="1"><then sequence="a"><log/></then></filter>', 'log: is not an element of <then>'],
  ['<switch/>', 'switch/source: is missing'],
  ['<switch source="1"><case><log/></case></switch>', 'case/regex: is missing'],
  ['<switch source="1"><case regex="("/></switch>', 'case/regex = (: is not a valid regular expression'],
  ['<switch source="1"><default/><default/></switch>', 'default: is repeated in <switch>'],
  ['<switch source="1"><default x="y"/></switch>', 'default/x: is an unknown attribute'],
  ['<switch source="1"><log/></switch>', 'log: is not an element of <switch>'],
]

testRefusals(REFUSED)

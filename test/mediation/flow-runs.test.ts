/** Flows: sequences that run in order, their ends, mediators that fail or wait, and `onError`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Message } from '../../src/mediation/message.ts'
import { CompiledSequences } from '../../src/mediation/compiled-sequences.ts'
import type { SequencePlan } from '../../src/mediation/sequence-plan.ts'
import { causes, planOf, run, testRefusals } from './test-sequences.ts'

const mark = (name: string) => `<property name="${name}" value="x"/>`
const FAILS = '<throwError type="T" errorMessage="m"/>'

interface Ended {
  readonly end: string
  readonly message: Message
  /** Single letters of properties that were set. */
  readonly marks: string
}

/** `onErrors`: name of the sequence that handles the faults of another one. */
async function flow(
  names: readonly string[],
  sequences: Readonly<Record<string, string>>,
  onErrors: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const plans: SequencePlan[] = []
  for (const [name, steps] of Object.entries(sequences)) {
    plans.push({ ...(await planOf(steps, name)), onError: onErrors[name] ?? '' })
  }
  const message = new Message(() => undefined)
  message.receive({ method: 'GET', target: '/', status: 0, reason: '' }, null)
  const end = new CompiledSequences(plans, () => undefined).runToEnd(names, message)
  assert.equal(typeof end, 'string', 'nothing waits')
  const marks = [...'abcdefgh'].filter(name => message.get('default', name) !== undefined).join('')
  return { end: end as string, message, marks }
}

/** Steps of the second of three sequences, end of the flow, and marks. */
const ENDS: readonly (readonly [string, string, string])[] = [
  [mark('b'), 'continues', 'abc'],
  ['<send/>', 'continues', 'a'],
  ['<property name="RESPONSE" value="true"/><send/>', 'responds', 'a'],
  ['<respond/>', 'responds', 'a'],
  ['<loopback/>', 'loops', 'a'],
  ['<drop/>', 'drops', 'a'],
  [`${mark('b')}${FAILS}${mark('d')}`, 'faults', 'ab'],
  [`<filter xpath="true()"><then>${FAILS}</then></filter>`, 'faults', 'a'],
]

for (const [steps, end, marks] of ENDS) {
  test(`${steps} in the second sequence of a flow: it ${end}`, async () => {
    const ended = await flow(['one', 'two', 'three'], { one: mark('a'), two: steps, three: mark('c') })
    assert.deepEqual([ended.end, ended.marks], [end, marks])
  })
}

test('loopback in the response flow goes on', async () => {
  const message = new Message(() => undefined)
  message.isFromBackend = true
  const sequences = new CompiledSequences([await planOf(`<loopback/>${mark('a')}`)], () => undefined)
  assert.equal(sequences.runToEnd(['one'], message), 'continues')
  assert.equal(message.get('default', 'a'), 'x')
})

test('a fault without onError ends the flow, and says where it was raised', async () => {
  const { message } = await flow(['one'], { one: '<throwError type="T" errorMessage="{concat(\'a\', 1)}"/>' })
  const cause = 'one.xml:1: <throwError> of type T'
  assert.deepEqual(message.fault, { code: 0, message: 'a1', detail: 'T', cause, sequence: '', type: 'T' })
})

test('onError runs with the fault in its properties, and the fault ends the flow', async () => {
  const sequences = { one: FAILS + mark('a'), two: mark('b'), handler: mark('c') }
  const ended = await flow(['one', 'two'], sequences, { one: 'handler' })
  assert.deepEqual([ended.end, ended.marks, ended.message.fault?.message], ['faults', 'c', 'm'])
  const names = ['ERROR_CODE', 'ERROR_MESSAGE', 'ERROR_DETAIL', 'ERROR_EXCEPTION']
  assert.deepEqual(
    names.map(name => ended.message.get('default', name)),
    ['T', 'm', 'T', 'one.xml:1: <throwError> of type T'],
  )
})

test('onError may answer in place of the fault', async () => {
  for (const [steps, end] of [
    ['<respond/>', 'responds'],
    ['<drop/>', 'drops'],
    ['<send/>', 'continues'],
  ] as const) {
    const ended = await flow(
      ['one', 'two'],
      { one: FAILS, two: mark('b'), handler: mark('c') + steps },
      { one: 'handler' },
    )
    assert.deepEqual([ended.end, ended.marks, ended.message.fault], [end, 'c', null])
  }
})

test('the innermost onError runs alone', async () => {
  const sequences = { one: '<sequence key="two"/>', two: FAILS, outer: mark('a'), inner: mark('b') }
  assert.equal((await flow(['one'], sequences, { one: 'outer', two: 'inner' })).marks, 'b')
  assert.equal((await flow(['one'], sequences, { one: 'outer' })).marks, 'a')
})

test('the onError of a caller handles a fault of an onError', async () => {
  const sequences = { one: '<sequence key="two"/>', two: FAILS, outer: mark('a'), inner: mark('b') + FAILS }
  assert.equal((await flow(['one'], sequences, { one: 'outer', two: 'inner' })).marks, 'ab')
  const own = await flow(['one'], { one: mark('a') + FAILS }, { one: 'one' })
  assert.deepEqual([own.end, own.marks], ['faults', 'a'])
})

test('a message that reaches a limit ends with a fault, whatever handles faults', async () => {
  const ended = await flow(['one'], { one: '<sequence key="one"/>', handler: mark('a') }, { one: 'handler' })
  assert.deepEqual([ended.end, ended.marks], ['faults', ''])
  const { code, cause } = ended.message.fault!
  assert.deepEqual([code, cause], [102545, 'entered more than 100 sequences'])
})

test('a fault sequence that fails leaves no response, and says where', async () => {
  const ran = await run(FAILS)
  assert.deepEqual([ran.outcome, causes(ran)], ['failed', ['one.xml:1: <throwError> of type T']])
})

testRefusals([
  ['<throwError errorMessage="a"/>', 'throwError/type: is missing'],
  ['<throwError type="T"/>', 'throwError/errorMessage: is missing'],
  ['<throwError type="T" errorMessage="{(}"/>', 'throwError/errorMessage = (: is not valid XPath'],
  ['<loopback a="b"/>', 'loopback/a: is an unknown attribute'],
])

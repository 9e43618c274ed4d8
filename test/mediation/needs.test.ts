/** What flows need, computed from their sequences: nothing, constant head edits, heads, or a worker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsOf } from '../../src/mediation/needs.ts'
import { planOf } from './test-sequences.ts'

const CONSTANT = '<property name="X" value="1" scope="transport"/>'
const HEADS = '<property name="x" expression="$trp:A"/>'
const WORKER = '<property name="x" expression="json-eval($.a)"/>'

/** Steps of the sequence `one`, and its needs. */
const ROWS: readonly (readonly [string, string])[] = [
  ['', 'nothing'],
  [CONSTANT, 'constant'],
  ['<property name="X" scope="transport" action="remove"/>', 'constant'],
  ['<header name="X" value="1" scope="transport"/>', 'constant'],
  ['<header name="X" scope="transport" action="remove"/>', 'constant'],
  ['<header name="X" expression="$ctx:a" scope="transport"/>', 'heads'],
  ['<header name="To" value="/a"/>', 'heads'],
  ['<property name="X" value="abc" pattern="(a).*" group="1" scope="transport"/>', 'heads'],
  ['<property name="x" value="1"/>', 'heads'],
  [HEADS, 'heads'],
  [CONSTANT + HEADS, 'heads'],
  [WORKER, 'worker'],
  [WORKER + CONSTANT, 'worker'],
  ['<property name="x" expression="//a"/>', 'worker'],
  ['<property name="x" expression="$body"/>', 'worker'],
  ['<property name="x" expression="concat(\'a\', json-eval($.a))"/>', 'worker'],
  ['<property name="x" expression="1 + -json-eval($.a)"/>', 'worker'],
  ['<property name="messageType" value="application/json" scope="axis2"/>', 'worker'],
  ['<property name="NO_ENTITY_BODY" scope="axis2" action="remove"/>', 'worker'],
  ['<property name="DISABLE_CHUNKING" value="true" scope="axis2"/>', 'worker'],
  ['<property name="{$trp:A}" value="1"/>', 'heads'],
  ['<property name="{$trp:A}" value="1" scope="transport"/>', 'heads'],
  ['<property name="{$trp:A}" scope="transport" action="remove"/>', 'heads'],
  ['<property name="{json-eval($.a)}" value="1"/>', 'worker'],
  ['<property name="{$trp:A}" value="1" scope="axis2"/>', 'worker'],
  ['<property name="a" type="OM"><x/></property>', 'heads'],
  ['<property name="a" type="OM" expression="$trp:A"/>', 'worker'],
  ['<log/>', 'heads'],
  ['<log level="headers"/>', 'heads'],
  ['<log level="full"/>', 'worker'],
  ['<log level="custom"><property name="a" expression="json-eval($.a)"/></log>', 'worker'],
  ['<payloadFactory media-type="json"><format>{}</format></payloadFactory>', 'worker'],
  ['<makefault version="pox"><reason value="a"/></makefault>', 'worker'],
  [`<filter xpath="$trp:A"><then>${CONSTANT}</then></filter>`, 'heads'],
  [`<filter xpath="$trp:A"><else>${WORKER}</else></filter>`, 'worker'],
  ['<filter xpath="//a"><then/></filter>', 'worker'],
  ['<filter xpath="$trp:A"><then sequence="body"/></filter>', 'worker'],
  [`<switch source="$trp:A"><case regex="a">${CONSTANT}</case></switch>`, 'heads'],
  [`<switch source="$trp:A"><case regex="a">${CONSTANT}</case><default>${WORKER}</default></switch>`, 'worker'],
  [`<in>${CONSTANT}</in>`, 'heads'],
  [`<out>${WORKER}</out>`, 'worker'],
  ['<sequence key="constant"/>', 'constant'],
  ['<sequence key="heads"/>', 'heads'],
  ['<sequence key="body"/>', 'worker'],
  ['<sequence key="one"/>', 'nothing'],
  ['<sequence key="missing"/>', 'nothing'],
  ['<drop/>', 'heads'],
  ['<send/>', 'heads'],
  ['<send receive="heads"/>', 'worker'],
  ['<respond/>', 'worker'],
]

const OTHERS: Readonly<Record<string, string>> = { constant: CONSTANT, heads: HEADS, body: WORKER }

for (const [steps, needs] of ROWS) {
  test(`${steps || 'no step'} needs ${needs}`, async () => {
    const plans = [await planOf(steps)]
    for (const [name, text] of Object.entries(OTHERS)) plans.push(await planOf(text, name))
    const lookup = (name: string) => plans.find(plan => plan.name === name)
    assert.equal(needsOf(['one'], lookup), needs)
  })
}

test('a flow needs what the most demanding of its sequences needs', async () => {
  const plans = await Promise.all(Object.entries(OTHERS).map(([name, text]) => planOf(text, name)))
  const lookup = (name: string) => plans.find(plan => plan.name === name)
  assert.equal(needsOf([], lookup), 'nothing')
  assert.equal(needsOf(['constant'], lookup), 'constant')
  assert.equal(needsOf(['constant', 'heads'], lookup), 'heads')
  assert.equal(needsOf(['body', 'constant'], lookup), 'worker')
})

test('the onError sequence counts where a step can fail', async () => {
  const body = await planOf(WORKER, 'body')
  const fails = '<throwError type="T" errorMessage="m"/>'
  const others = [body, await planOf(fails, 'fails')]
  for (const [steps, needs] of [
    [HEADS, 'heads'],
    [CONSTANT, 'constant'],
    [fails, 'worker'],
    [`<filter xpath="$trp:A"><then>${fails}</then></filter>`, 'worker'],
    ['<sequence key="fails"/>', 'worker'],
  ] as const) {
    const one = { ...(await planOf(steps)), onError: 'body' }
    assert.equal(
      needsOf(['one'], name => [one, ...others].find(plan => plan.name === name)),
      needs,
    )
  }
})

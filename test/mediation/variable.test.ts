/** `<variable>`, `<propertyGroup>` and sequences whose key is an expression. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { causes, run, testRefusals } from './test-sequences.ts'

/** Attributes of a variable, and its value. */
const TYPED: readonly (readonly [string, unknown])[] = [
  ['value="a"', 'a'],
  ['value="7" type="INTEGER"', 7],
  ['value="1.5" type="DOUBLE"', 1.5],
  ['value="true" type="BOOLEAN"', true],
  ['value="{&quot;a&quot;:[1]}" type="JSON"', { kind: 'json', value: { a: [1] } }],
  ['expression="concat($ctx:p, 1)"', 'x1'],
]

for (const [attributes, expected] of TYPED) {
  test(`variable ${attributes}`, async () => {
    const steps = `<variable name="v" ${attributes}/><property name="w" expression="$var:v"/>`
    const { message } = await run(steps, { properties: { p: 'x' } })
    assert.deepEqual(message.get('variable', 'v'), expected)
    assert.equal(message.get('default', 'v'), undefined)
    const text = typeof expected === 'object' ? '{"a":[1]}' : String(expected)
    assert.equal(message.get('default', 'w'), text)
  })
}

test('a variable of type XML is an element, and a removed one is none', async () => {
  const steps = '<variable name="v" type="XML"><a xmlns="">1</a></variable>'
  const { message } = await run(steps)
  assert.equal((message.get('variable', 'v') as { kind: string }).kind, 'xml')
  const removed = await run(`${steps}<variable name="v" action="remove"/>`)
  assert.equal(removed.message.get('variable', 'v'), undefined)
})

test('a value of another type removes the variable and is reported', async () => {
  const steps = '<variable name="v" value="1"/><variable name="v" type="INTEGER" expression="$ctx:p"/>'
  const ran = await run(steps, { properties: { p: 'x' } })
  assert.equal(ran.message.get('variable', 'v'), undefined)
  assert.deepEqual(causes(ran), ['the value of variable v is not a valid INTEGER'])
})

test('a property group sets its properties in order', async () => {
  const steps =
    '<propertyGroup><property name="a" value="1"/><property name="b" expression="concat($ctx:a, 2)"/></propertyGroup>'
  const { message } = await run(steps)
  assert.equal(message.get('default', 'b'), '12')
})

test('an expression finds the sequence that runs', async () => {
  const steps = '<sequence key="{$ctx:p}"/>'
  const others = { two: '<property name="a" value="2"/>', three: '<property name="a" value="3"/>' }
  for (const [p, expected] of [
    ['two', '2'],
    ['three', '3'],
  ] as const) {
    assert.equal((await run(steps, { properties: { p }, others })).message.get('default', 'a'), expected)
  }
  const missing = await run(steps, { properties: { p: 'four' }, others })
  assert.deepEqual(
    [missing.outcome, causes(missing)],
    ['failed', ['one.xml:1: there is no sequence of the name that its key finds']],
  )
})

testRefusals([
  ['<variable value="a"/>', 'variable/name: is missing'],
  ['<variable name="a"/>', 'variable/value: expected either value or expression'],
  ['<variable name="a" value="x" type="INTEGER"/>', 'variable/value = x: is not a valid INTEGER'],
  ['<variable name="a" value="x" type="SHORT"/>', 'variable/type = SHORT: expected one of STRING'],
  ['<variable name="a" value="x" scope="axis2"/>', 'variable/scope: is an unknown attribute'],
  ['<variable name="a"><x/></variable>', 'x: is allowed as the value of type XML only'],
  ['<propertyGroup><log/></propertyGroup>', 'log: is not an element of <propertyGroup>'],
  ['<builder><messageBuilder class="a.JsonBuilder"/></builder>', 'messageBuilder/contentType: is missing'],
  [
    '<builder><messageBuilder contentType="a/b" class="a.B"/></builder>',
    'messageBuilder/class = a.B: is not a known builder',
  ],
])

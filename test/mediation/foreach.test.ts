/** `<foreach>`: over parts of the body in place, and over collections on copies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonOfXml } from '../../src/mediation/json-xml.ts'
import { markupOf } from '../../src/mediation/value.ts'
import { writeXml } from '../../src/mediation/xml-tree.ts'
import { causes, run, testRefusals } from './test-sequences.ts'

const DOUBLE =
  '<payloadFactory media-type="json"><format>{"n":$1,"at":$2}</format>' +
  '<args><arg expression="json-eval($.n)"/><arg expression="$ctx:FOREACH_COUNTER"/></args></payloadFactory>'
const LIST = { list: [{ n: 1 }, { n: 2 }], other: true }
const NUMBERED = {
  list: [
    { n: 1, at: 0 },
    { n: 2, at: 1 },
  ],
  other: true,
}

function jsonOf(ran: Awaited<ReturnType<typeof run>>): unknown {
  const { payload } = ran.message
  assert.equal(payload?.kind, 'json')
  return JSON.parse((payload as { text: string }).text)
}

test('each item of an array is the body in turn, and its result takes its place', async () => {
  for (const path of ['$.list', '$.list[*]']) {
    const ran = await run(`<foreach expression="json-eval(${path})"><sequence>${DOUBLE}</sequence></foreach>`, {
      json: LIST,
    })
    assert.deepEqual(causes(ran), [])
    assert.deepEqual(jsonOf(ran), NUMBERED)
  }
})

test('items keep the digits of numbers that no double holds', async () => {
  const text = '{"l":[{"n":12345678901234567890},0.12345678901234567890]}'
  for (const attribute of ['expression', 'collection']) {
    const ran = await run(
      `<payloadFactory media-type="json"><format>${text}</format><args/></payloadFactory>
      <foreach ${attribute}="json-eval($.l)"><sequence><log level="custom"/></sequence></foreach>`,
    )
    assert.deepEqual(ran.message.payload, { kind: 'json', text })
  }
})

test('a sequence of another file runs for more items than a message may enter sequences', async () => {
  const json = { list: Array.from({ length: 300 }, (_, n) => ({ n })) }
  const count = '<property name="sum" expression="$ctx:sum + json-eval($.n)" type="DOUBLE"/>'
  const steps = '<property name="sum" value="0" type="DOUBLE"/><foreach expression="json-eval($.list)" sequence="two"/>'
  const ran = await run(steps, { json, others: { two: count } })
  assert.deepEqual([ran.outcome, ran.message.get('default', 'sum')], ['ended', 44850])
  assert.deepEqual(jsonOf(ran), json)
})

test('foreach over XML replaces elements, and its id names the counter', async () => {
  const steps =
    '<payloadFactory><format><r xmlns=""><a>1</a><b/><a>2</a></r></format></payloadFactory>' +
    '<foreach id="x" expression="//a"><sequence><payloadFactory><format><c xmlns="" at="$2">$1</c></format><args>' +
    '<arg expression="string(//a)"/><arg expression="$ctx:x_FOREACH_COUNTER"/></args></payloadFactory></sequence></foreach>'
  const ran = await run(steps)
  assert.deepEqual(causes(ran), [])
  const { payload } = ran.message
  const text = payload?.kind === 'xml' ? writeXml(payload.root).replaceAll(' xmlns=""', '') : ''
  assert.equal(text, '<r><c at="0">1</c><b/><c at="1">2</c></r>')
})

test('a collection runs on copies: its results replace it, and nothing else of the copies stays', async () => {
  const body = `<property name="seen" value="1"/>${DOUBLE.replace('$ctx:FOREACH_COUNTER', '$var:i')}`
  const attributes = 'collection="json-eval($.list)" counter-variable="i"'
  const ran = await run(`<foreach ${attributes}><sequence>${body}</sequence></foreach>`, { json: LIST })
  assert.deepEqual(jsonOf(ran), NUMBERED)
  assert.equal(ran.message.get('default', 'seen'), undefined)
  assert.equal(ran.message.get('variable', 'i'), undefined)
  const kept = await run(`<foreach ${attributes} result-target="r"><sequence>${body}</sequence></foreach>`, {
    json: LIST,
  })
  assert.deepEqual(jsonOf(kept), LIST)
  assert.deepEqual(kept.message.get('variable', 'r'), { kind: 'json', value: NUMBERED.list })
  const read = await run(`<foreach ${attributes} update-original="false"><sequence>${body}</sequence></foreach>`, {
    json: LIST,
  })
  assert.deepEqual(jsonOf(read), LIST)
})

test('an item that ends the flow ends it, one that fails fails it', async () => {
  const foreach = (steps: string) => `<foreach expression="json-eval($.list)"><sequence>${steps}</sequence></foreach>`
  const ended = await run(`${foreach('<respond/>')}<property name="after" value="1"/>`, { json: LIST })
  assert.deepEqual([ended.outcome, ended.message.get('default', 'after')], ['responded', undefined])
  const failed = await run(foreach('<throwError type="T" errorMessage="m"/>'), { json: LIST })
  assert.equal(failed.outcome, 'failed')
  const collection = '<foreach collection="json-eval($.other)"><sequence><drop/></sequence></foreach>'
  assert.deepEqual(causes(await run(collection, { json: LIST })), [
    'one.xml:1: the collection of foreach is no JSON array',
  ])
})

/** Steps of one item and the attributes of a loop, which together run more mediators than a message may. */
const TRIVIAL = '<property name="a" value="1"/>'.repeat(999)
const ITEMS = Array.from({ length: 260 }, () => 0)

for (const attribute of ['expression', 'collection']) {
  test(`a loop over ${attribute} ends at the limit of mediators, those of all items together`, async () => {
    const steps = `<foreach ${attribute}="json-eval($.l)"><sequence>${TRIVIAL}</sequence></foreach>`
    const ran = await run(steps, { json: { l: ITEMS } })
    assert.deepEqual([ran.outcome, causes(ran)], ['failed', ['ran more than 250000 mediators']])
  })
}

test('a flow ends for its own processor time, not for the time that its thread waits for a processor', async t => {
  let nowMs = 0
  t.mock.method(performance, 'now', () => {
    nowMs += 10_000
    return nowMs
  })
  const steps = `<foreach expression="json-eval($.l)"><sequence>${TRIVIAL}</sequence></foreach>`
  assert.deepEqual(causes(await run(steps, { json: { l: [1, 2] } })), [])
  let cpuUs = 0
  t.mock.method(process, 'threadCpuUsage', () => {
    cpuUs += 4_000_000
    return { user: cpuUs, system: 0 }
  })
  const ran = await run(steps, { json: { l: [1, 2] } })
  assert.deepEqual([ran.outcome, causes(ran)], ['failed', ['computed for more than 3000 ms without waiting']])
})

test('the whole payload is a property while the parts of it run', async () => {
  const steps = '<property name="of" expression="$ctx:x_FOREACH_ORIGINAL_MESSAGE"/>'
  const ran = await run(`<foreach id="x" expression="json-eval($.list)"><sequence>${steps}</sequence></foreach>`, {
    json: LIST,
  })
  assert.equal(ran.message.get('default', 'of'), JSON.stringify(LIST))
  assert.equal(ran.message.get('default', 'x_FOREACH_ORIGINAL_MESSAGE'), undefined)
})

const ODD = (steps: string) => `<filter source="json-eval($.n)" regex="1"><then>${steps}</then></filter>`
const AFTER = '<property name="after" value="1"/>'

/** [steps of the first of two items, outcome of the message, its payload]. */
const ENDINGS = [
  ['<respond/>', 'responded', { n: 1 }],
  ['<loopback/>', 'looped', { n: 1 }],
  ['<send/>', 'sent', { n: 1 }],
  ['<drop/>', 'ended', { list: [{ n: 2, after: 1 }], other: true }],
] as const

for (const [steps, outcome, expected] of ENDINGS) {
  for (const parallel of [true, false]) {
    test(`${steps} in an item of a collection, parallel: ${parallel}`, async () => {
      const loop = `<foreach collection="json-eval($.list)" parallel-execution="${parallel}">
        <sequence>${ODD(steps)}<payloadFactory media-type="json"><format>{"n":2,"after":1}</format></payloadFactory>
        </sequence></foreach>`
      const ran = await run(loop + AFTER, { json: LIST })
      assert.deepEqual(causes(ran), [])
      assert.deepEqual([ran.outcome, jsonOf(ran)], [outcome, expected])
      assert.equal(ran.message.get('default', 'after'), outcome === 'ended' ? '1' : undefined)
    })
  }
}

const ORDER = '<payloadFactory><format><r xmlns=""><a>1</a><b/><a>2</a></r></format></payloadFactory>'
const TO_C = `<payloadFactory><format><c xmlns="">$1</c></format><args><arg expression="string(//a)"/></args>
  </payloadFactory>`
const xmlOf = (ran: Awaited<ReturnType<typeof run>>) => {
  const { payload } = ran.message
  return payload?.kind === 'xml' ? writeXml(payload.root).replaceAll(' xmlns=""', '') : ''
}

for (const collection of ['//a', `\${xpath('//a')}`]) {
  test(`the elements that ${collection} finds are a collection, whose results take their places`, async () => {
    const ran = await run(`${ORDER}<foreach collection="${collection}"><sequence>${TO_C}</sequence></foreach>`)
    assert.deepEqual(causes(ran), [])
    assert.equal(xmlOf(ran), '<r><c>1</c><b/><c>2</c></r>')
  })
}

test('results are the elements of an XML variable where the type says so', async () => {
  const attributes =
    'update-original="false" target-variable="v" result-content-type="XML" result-enclosing-element="all"'
  const xml = await run(`${ORDER}<foreach collection="//a" ${attributes}><sequence>${TO_C}</sequence></foreach>`)
  assert.equal(xmlOf(xml), '<r><a>1</a><b/><a>2</a></r>')
  const nodes = (ran: Awaited<ReturnType<typeof run>>) => {
    const value = ran.message.get('variable', 'v')
    return typeof value === 'object' && value.kind === 'xml' ? markupOf(value).replaceAll(' xmlns=""', '') : value
  }
  assert.equal(nodes(xml), '<all><c>1</c><c>2</c></all>')
  const json = await run(
    `<foreach collection="json-eval($.list)" ${attributes}><sequence><log level="custom"/></sequence></foreach>`,
    { json: LIST },
  )
  assert.equal(nodes(json), '<all><n>1</n><n>2</n></all>')
})

test('results replace a collection within a variable', async () => {
  const steps = `<variable name="v" type="JSON" expression="\${payload}"/>
    <foreach collection="\${vars.v.list}"><sequence><payloadFactory media-type="json"><format>0</format>
    </payloadFactory></sequence></foreach>`
  const ran = await run(steps, { json: LIST })
  assert.deepEqual(causes(ran), [])
  assert.deepEqual(ran.message.get('variable', 'v'), { kind: 'json', value: { list: [0, 0], other: true } })
})

testRefusals([
  ['<foreach expression="//a"/>', 'foreach/sequence: expected either sequence, or a child <sequence>'],
  ['<foreach sequence="a"/>', 'foreach/expression: is missing'],
  ['<foreach sequence="a" expression="1"/>', 'foreach/expression = 1: is no path into the body'],
  ['<foreach sequence="a" expression="//a" counter-variable="i"/>', 'foreach/counter-variable: needs collection'],
  ['<foreach sequence="a" collection="//a" id="i"/>', 'foreach/id: has no effect with collection'],
  [
    '<foreach sequence="a" collection="//a" result-target="v" result-type="XML"/>',
    'foreach/result-enclosing-element: is missing',
  ],
  ['<foreach sequence="a" expression="//a" key="i"/>', 'foreach/key: is an unknown attribute'],
])

test('an XPath loop over JSON leaves arrays of one item and of none what they are', async () => {
  const json = { of: [{ tags: ['a'], none: [] }], one: [['b']], empty: [] }
  const steps =
    '<foreach expression="//of"><sequence><property name="p" expression="count(//tags)"/></sequence></foreach>' +
    '<property name="q" expression="//of"/><property name="n" expression="count(//of/node())"/>' +
    '<property name="xml" expression="//of/node()"/>'
  const { message } = await run(steps, { json })
  const { payload } = message
  assert.ok(payload?.kind === 'xml')
  assert.deepEqual(jsonOfXml(payload.root), json)
  assert.equal(writeXml(payload.root).includes('<?'), false)
  assert.equal(markupOf(message.get('default', 'q')!).includes('<?'), false)
  assert.equal(markupOf(message.get('default', 'xml')!), 'a')
})

/** Messages that would harm the thread they run on: each is answered, and the thread and its other messages live on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { processorMs } from '../harness/processor-time.ts'
import { json, messageOf, startWorker, textOf } from './started-worker.ts'

const MIB = 1024 * 1024
const AS_XML = '<property name="messageType" value="application/xml" scope="axis2"/>'
const AS_JSON = '<property name="messageType" value="application/json" scope="axis2"/>'

const SMALL_HEAP = { http: { worker_pool_heap_bytes: 64 * MIB, worker_pool_size_core: 100 } }
const NO_ROOM = 102533

test('a body that the heap has no room for is refused, and ends neither thread nor process', async t => {
  const worker = await startWorker(t, { request: AS_XML }, SMALL_HEAP)
  const text = `["${'x'.repeat(15 * MIB)}","${'y'.repeat(15 * MIB)}"]`
  const results = await Promise.all(Array.from({ length: 5 }, () => worker.run({ body: json(text) })))
  for (const result of results) {
    assert.ok(result.kind === 'faults', result.kind)
    assert.equal(result.fault.code, NO_ROOM)
  }
  assert.match(textOf(messageOf(await worker.run({ body: json('{"a":1}') }))), /<a>1<\/a>/)
  assert.deepEqual(worker.reports, [])
})

test('many small items count with the memory that they need, not with their bytes', async t => {
  const worker = await startWorker(t, { request: AS_XML }, SMALL_HEAP)
  const result = await worker.run({ body: json(`[${'1,'.repeat(400_000)}1]`) })
  assert.ok(result.kind === 'faults', result.kind)
  assert.equal(result.fault.code, NO_ROOM)
})

test('the items of an XML body count likewise', async t => {
  const worker = await startWorker(t, { request: AS_JSON }, SMALL_HEAP)
  const fields = [['Content-Type', 'application/xml']] as const
  const result = await worker.run({ fields, body: json(`<r>${'<a/>'.repeat(400_000)}</r>`) })
  assert.ok(result.kind === 'faults', result.kind)
  assert.equal(result.fault.code, NO_ROOM)
})

test('a sequence that copies the message into itself in the background ends', async t => {
  const log = '<log level="custom"><property name="ROUND" value="1"/></log>'
  const again = `${log}<clone continueParent="true"><target sequence="again"/></clone>`
  const worker = await startWorker(t, { request: '<sequence key="again"/>', others: { again } })
  assert.equal((await worker.run({ body: json('{"a":1}') })).kind, 'continues')
  const refused = () => worker.reports.find(({ fields }) => /copies of a message/.test(String(fields.CAUSE_OF_ERROR)))
  while (refused() === undefined) await setTimeout(10)
  assert.ok(worker.reports.length < 20, String(worker.reports.length))
})

const COUNTS = `<property name="n" expression="count(//*//*)"/>
  <property name="X-N" expression="get-property('n')" scope="transport"/>`
const XML = [['Content-Type', 'application/xml']] as const

test('a document that XPath has no memory for is a fault, and one with many declarations is read', async t => {
  const worker = await startWorker(t, { request: COUNTS }, SMALL_HEAP)
  const declared = Array.from({ length: 3000 }, (_, at) => `xmlns:a${at}="u${at}"`).join(' ')
  const result = await worker.run({ fields: XML, body: json(`<r>${'<a/>'.repeat(60_000)}</r>`) })
  assert.ok(result.kind === 'faults', result.kind)
  assert.equal(result.fault.code, NO_ROOM)
  for (const [body, count] of [
    [`<r ${declared}>${'<a xmlns:b="c"/>'.repeat(3000)}</r>`, '3002'],
    ['<r><a/></r>', '3'],
  ] as const) {
    const { fields } = messageOf(await worker.run({ fields: XML, body: json(body) }))
    assert.deepEqual(fields.at(-1), ['X-N', count])
  }
})

const SLOW = `<property name="p" expression="json-eval($.a)"/>
  <foreach collection="\${payload.items}"><sequence>
    <filter source="get-property('p')" regex="(a+)+b"><then><drop/></then></filter>
  </sequence></foreach>`

test('a flow that computes for seconds is a fault before its thread is taken for dead', async t => {
  const worker = await startWorker(t, { request: SLOW })
  const items = Array.from({ length: 60_000 }, () => 1)
  const result = await worker.run({ body: json(JSON.stringify({ items, a: 'a'.repeat(8000) })) })
  assert.ok(result.kind === 'faults', result.kind)
  assert.equal(result.fault.code, 102542)
  assert.equal((await worker.run({ body: json('{"items":[1],"a":"a"}') })).kind, 'continues')
})

const ITEM_OF =
  '<payloadFactory media-type="xml"><format><o>$1</o></format><args><arg expression="//p"/></args></payloadFactory>'
const REMOVED = '<enrich><source xpath="//none"/><target action="remove" xpath="//item"/></enrich>'

for (const [what, request, item, count] of [
  [
    'a foreach',
    `<foreach expression="//item"><sequence>${ITEM_OF}</sequence></foreach>`,
    '<item><p>1</p></item>',
    8000,
  ],
  ['an enrich', REMOVED, '<item/>', 20_000],
] as const) {
  test(`${what} over ${count} elements costs as much as they are, and goes on`, async t => {
    const worker = await startWorker(t, { request })
    const result = await worker.run({ fields: XML, body: json(`<r>${item.repeat(count)}<end/></r>`) })
    assert.ok(/<r>(?:<o>1<\/o>)*<end\/><\/r>$/.test(textOf(messageOf(result))))
  })
}

const EACH = (steps: string) => `<target><sequence>${steps}</sequence></target>`
const ATTACHED = (steps: string) =>
  `<iterate preservePayload="true" attachPath="//l" expression="//i">${EACH(steps)}</iterate>`
const REST = `<r><l>${'<i/>'.repeat(500)}</l><rest>${'<k>1</k>'.repeat(16_000)}</rest></r>`

test('copies of an iterate share what their items leave of the payload', async t => {
  const worker = await startWorker(t, { request: ATTACHED('<property name="a" value="1"/>') })
  const text = textOf(messageOf(await worker.run({ fields: XML, body: json(REST) })))
  assert.ok(text.endsWith(`<r><l><i/></l>${REST.slice(REST.indexOf('<rest>'))}`))
})

test('an iterate whose copies compute for too long together ends, though each copy runs few mediators', async t => {
  const worker = await startWorker(t, { request: ATTACHED('<property name="a" expression="count(//k)"/>') })
  const result = await worker.run({ fields: XML, body: json(REST) })
  assert.ok(result.kind === 'faults', result.kind)
  assert.equal(result.fault.code, 102542)
  assert.deepEqual(worker.reports, [])
})

test('copies of JSON have no text that nobody reads', async t => {
  const [place, items] = ['json-eval($.l)', Array.from({ length: 1000 }, (_, at) => at)]
  const copies = `<iterate preservePayload="true" attachPath="${place}" expression="${place}">`
  const request = `${copies}${EACH('<property name="a" expression="json-eval($.rest)"/>')}</iterate>`
  const worker = await startWorker(t, { request }, SMALL_HEAP)
  const rest = 'x'.repeat(150_000)
  const result = await worker.run({ body: json(JSON.stringify({ l: items, rest })) })
  assert.equal(textOf(messageOf(result)), JSON.stringify({ l: 0, rest }))
})

test('a foreach over copies costs as much as its items are, though a variable holds the whole payload', async t => {
  const items = Array.from({ length: 15_000 }, (_, k) => ({ k }))
  const request = `<variable name="all" type="JSON" expression="\${payload}"/>
    <foreach collection="\${payload.items}"><sequence>
      <variable name="first" type="STRING" expression="\${vars.all.items[0].k}"/>
    </sequence></foreach>`
  const worker = await startWorker(t, { request })
  const result = await worker.run({ body: json(JSON.stringify({ items })) })
  assert.equal(textOf(messageOf(result)), JSON.stringify({ items }))
})

test('copies read the body once, together', async t => {
  const targets = EACH('<property name="n" expression="count(//k)"/>').repeat(100)
  const worker = await startWorker(t, { request: `<clone>${targets}</clone>` })
  const before = processorMs()
  assert.equal((await worker.run({ fields: XML, body: json(REST) })).kind, 'continues')
  // One hundred bodies of this size take ten seconds.
  assert.ok(processorMs() - before < 4000, `${processorMs() - before} ms`)
})

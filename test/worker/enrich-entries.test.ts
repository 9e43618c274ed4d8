/** `<enrich>` with an inline source by key: the content of a local entry or file, on real workers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { temporaryHome } from '../config/temporary-home.ts'
import { json, messageOf, startWorker, textOf } from './started-worker.ts'

const FILES = {
  'synapse-configs/default/local-entries/json.xml': '<localEntry key="json">{"c": [1, 2]}</localEntry>',
  'synapse-configs/default/local-entries/xml.xml': '<localEntry key="xml"><c><d>1</d></c></localEntry>',
  'synapse-configs/default/local-entries/text.xml': '<localEntry key="text">it is text</localEntry>',
  'parts/part.json': '{"of": "a file"}',
}

/** [key, body whose member `a` the content replaces] */
const ROWS: readonly (readonly [key: string, body: string])[] = [
  ['json', '{"a":{"c":[1,2]},"b":2}'],
  ['xml', '{"a":{"c":{"d":1}},"b":2}'],
  ['text', '{"a":"it is text","b":2}'],
  ['parts/part.json', '{"a":{"of":"a file"},"b":2}'],
]

for (const [key, expected] of ROWS) {
  test(`the content of ${key} is the source`, async t => {
    const request = `<enrich><source type="inline" key="${key}"/><target xpath="json-eval($.a)"/></enrich>`
    const worker = await startWorker(t, { request }, { home: temporaryHome(t, FILES) })
    assert.equal(textOf(messageOf(await worker.run({ body: json('{"a":1,"b":2}') }))), expected)
  })
}

test('a key without an entry fails the message with its name', async t => {
  const request = '<enrich><source type="inline" key="none"/><target type="body"/></enrich>'
  const worker = await startWorker(t, { request }, { home: temporaryHome(t, FILES) })
  const result = await worker.run({ body: json('{"a":1}') })
  assert.ok(result.kind === 'faults')
  assert.match(result.fault.cause, /none is neither a local entry nor a file/)
})

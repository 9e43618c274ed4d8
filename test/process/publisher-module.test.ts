/** The operator's module of `[apim.analytics]` in the program: it gets events, and its crash is not that of a part. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ask } from '../harness/program.ts'
import { dial, home, leave, start } from '../harness/operator.ts'
import { eventually } from '../harness/peers.ts'
import { put } from '../harness/reloading.ts'
import { takeResponse } from '../harness/responses.ts'

after(leave)

test('a module gets the events of the gateway, and its crash leaves the control thread alone', async () => {
  const at = home()
  const file = join(at.path, 'published.ndjson')
  const module = `import { appendFileSync, existsSync } from 'node:fs'
export function publish(events) {
  const mark = ${JSON.stringify(join(at.path, 'crashed'))}
  if (!existsSync(mark)) {
    appendFileSync(mark, 'x')
    process.exit(3)
  }
  for (const { path } of events) appendFileSync(${JSON.stringify(file)}, path + '\\n')
}`
  put(at, 'publish.mjs', module)
  const sets = ['enable=true', 'event_publisher_type="custom"', 'event_publisher_impl="publish.mjs"']
  const gateway = await start(
    at,
    sets.map(set => `apim.analytics.${set}`),
  )
  const client = await dial(gateway)
  const get = async (path: string): Promise<void> => {
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    assert.equal((await takeResponse(client)).status, 200)
  }
  await get('/t/first')
  await eventually('the crash', () => gateway.program.err.text.includes('analytics events not published'))
  await get('/t/second')
  const published = () => (existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [])
  await eventually('both events', () => published().length === 2)
  assert.deepEqual(published().toSorted(), ['/t/first', '/t/second'])
  await eventually('the recovery', () => gateway.program.err.text.includes('analytics events are published again'))
  const messages = gateway.program.events.map(({ msg, CAUSE_OF_ERROR = '' }) => `${msg}: ${CAUSE_OF_ERROR}`)
  assert.ok(messages.includes('analytics events not published: exit code 3'), messages.join('\n'))
  assert.ok(!messages.some(message => message.includes('control thread died')))
  let memory = ''
  await eventually('its memory', () => {
    void ask(gateway.healthPort, 'GET', '/metrics').then(text => (memory = text))
    return /^sluice_thread_heap_used_bytes\{thread="control\/publisher-0"\} [1-9]\d{6,}$/m.test(memory)
  })
})

/** `sender.warnOnHTTP500`: the responses with status 500 that are logged as a warning. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { takeResponse } from '../harness/responses.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, ScriptedBackend } from '../harness/peers.ts'

const backend = await ScriptedBackend.listen()
after(() => backend.close())

/** The configured list, the status, the Content-Type line, and whether the response is logged. */
const CASES: readonly (readonly [string, number, string, boolean])[] = [
  ['text/xml', 500, 'Content-Type: text/xml', true],
  ['text/xml', 500, 'content-type: TEXT/XML ; charset=utf-8', true],
  ['application/json| text/xml', 500, 'Content-Type: text/xml', true],
  ['application/json,Text/XML', 500, 'Content-Type: text/xml', true],
  ['text/xml; charset=utf-8', 500, 'Content-Type: text/xml', true],
  ['*', 500, 'Content-Type: text/xml', true],
  ['*', 500, 'X: y', true],
  ['application/json|*', 500, 'Content-Type: text/xml', true],
  ['text/xml', 500, 'X: y', false],
  ['text/xml', 500, 'Content-Type:', false],
  ['text/xml', 500, 'Content-Type: text/xml2', false],
  ['text/*', 500, 'Content-Type: text/xml', false],
  ['', 500, 'Content-Type: text/xml', false],
  ['|', 500, 'Content-Type:', false],
  ['*', 502, 'Content-Type: text/xml', false],
  ['*', 200, 'Content-Type: text/xml', false],
]

for (const [list, status, line, isWarned] of CASES) {
  test(`sender.warnOnHTTP500 = "${list}": ${status} with "${line}" is ${isWarned ? '' : 'not '}logged`, async t => {
    const warnOn500 = { plain: list, secured: '' }
    const gateway = await startGateway([{ context: '/t', port: backend.port }], { warnOn500 })
    t.after(() => gateway.stop())
    const client = await connectPeer(gateway.port)
    backend.skip()
    client.send('GET /t/it?a=b HTTP/1.1\r\nHost: a\r\nactivityid: me\r\n\r\n')
    const peer = await backend.next()
    await peer.untilText('\r\n\r\n')
    peer.send(`HTTP/1.1 ${status} Oh\r\nA: b\r\n${line}\r\nContent-Length: 2\r\n\r\nok`)
    const response = await takeResponse(client)
    assert.deepEqual([response.status, response.body], [status, 'ok'])
    assert.deepEqual(
      gateway.reports.map(({ level, event }) => [level, event]),
      isWarned ? [['warn', 'backend answered 500']] : [],
    )
    if (isWarned) {
      const { API, TARGET_HOST, TARGET_PORT, CORRELATION_ID, HTTP_METHOD } = gateway.reports[0]!.fields
      assert.deepEqual(
        [API, TARGET_HOST, TARGET_PORT, CORRELATION_ID, HTTP_METHOD],
        ['t', '127.0.0.1', backend.port, 'me', 'GET'],
      )
    }
    client.destroy()
    peer.destroy()
  })
}

test('plain and secured backends have separate lists', async t => {
  const warnOn500 = { plain: '', secured: '*' }
  const gateway = await startGateway([{ context: '/t', port: backend.port }], { warnOn500 })
  t.after(() => gateway.stop())
  const client = await connectPeer(gateway.port)
  backend.skip()
  client.send('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.send('HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nok')
  assert.equal((await takeResponse(client)).status, 500)
  assert.deepEqual(gateway.reports, [])
  client.destroy()
  peer.destroy()
})

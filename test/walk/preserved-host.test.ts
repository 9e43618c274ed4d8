/** `http.headers.preserve` with Host: the backend gets one Host line, whatever the client sent. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { takeAnswer } from '../harness/answers.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'
import { valuesOf } from '../harness/strict-http.ts'

const backend = await AnsweringBackend.listen()
const gateway = await startGateway([{ context: '/t', port: backend.port }], { 'http.headers.preserve': ['host'] })
after(() => {
  gateway.stop()
  backend.close()
})

const OWN = `127.0.0.1:${backend.port}`
type Sent = readonly [name: string, start: string, fields: string, host: string]
const SENT: readonly Sent[] = [
  ['a name', 'GET /t/it HTTP/1.1', 'A: b\r\nHost: shop.example\r\n', 'shop.example'],
  ['a name and a port, with space around', 'GET /t/it HTTP/1.1', 'host:  shop.example:81 \t\r\n', 'shop.example:81'],
  ['an authority in the target', 'GET http://other.example/t/it HTTP/1.1', 'Host: shop.example\r\n', 'other.example'],
  ['nothing in 1.0', 'GET /t/it HTTP/1.0', '', OWN],
]

for (const [name, start, fields, host] of SENT) {
  test(`a preserved Host: ${name}`, async () => {
    const client = await connectPeer(gateway.port)
    client.send(`${start}\r\n${fields}\r\n`)
    assert.equal((await takeAnswer(client)).status, 200)
    assert.deepEqual(valuesOf(backend.requests.at(-1)!.lines, 'Host'), [host])
    assert.deepEqual(backend.violations, [])
    client.destroy()
  })
}

/** Fields in which only the gateway may say who the client is: no backend gets them from a client, in any API. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { planGateway, startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'

const backend = await AnsweringBackend.listen()
const gateway = await startGateway([{ context: '/t', port: backend.port }])
after(() => {
  gateway.stop()
  backend.close()
})

const NAMES = [
  'X-JWT-Assertion',
  'X-WSO2-CLIENT-CERTIFICATE',
  'X-Client-Cert',
  'X-SSL-Client-Cert',
  'SSL-Client-Cert',
  'X-SSL-CERT',
  'X-Forwarded-Client-Cert',
  'Client-Cert',
  'Client-Cert-Chain',
  'x_jwt_assertion',
  'X-SSL_client-CERT',
]

/** What the backend has got: fields and trailers, names in lower case. */
async function reached(head: string): Promise<string> {
  const peer = await connectPeer(gateway.port)
  peer.send(head)
  await peer.untilText('\r\n\r\nok')
  peer.destroy()
  const { lines, trailers } = backend.requests.at(-1)!
  return [...lines, ...trailers].join('\n').toLowerCase()
}

for (const name of NAMES) {
  test(`${name} from a client ends here, once and twice, between others and as a trailer`, async () => {
    const twice = `${name}: forged\r\nX-Kept: it\r\n${name.toUpperCase()}: forged\r\n`
    const got = await reached(`GET /t/a HTTP/1.1\r\nHost: a\r\n${twice}\r\n`)
    assert.match(got, /x-kept/)
    assert.doesNotMatch(got, /forged/)
    const chunked = `Transfer-Encoding: chunked\r\nTE: trailers\r\n\r\n0\r\nX-Late: it\r\n${name}: forged\r\n\r\n`
    const late = await reached(`POST /t/a HTTP/1.1\r\nHost: a\r\n${chunked}`)
    assert.match(late, /x-late/)
    assert.doesNotMatch(late, /forged/)
  })
}

test('the name that [apim.jwt] gives the field is withheld from its reload on, and the usual one still', async () => {
  const request = 'GET /t/a HTTP/1.1\r\nHost: a\r\nX-Caller_Token: one\r\nX-JWT-Assertion: two\r\n\r\n'
  assert.match(await reached(request), /: one/)
  const { identity } = planGateway([]).plan
  await gateway.deploy({ identity: { ...identity, backendJwt: { ...identity.backendJwt, field: 'X-Caller-Token' } } })
  assert.doesNotMatch(await reached(request), /: one|: two/)
})

test('fields that only look like them pass', async () => {
  const request = 'GET /t/a HTTP/1.1\r\nHost: a\r\nX-JWT-Assertion2: a\r\nClient-Certs: b\r\nX-SSL: c\r\n\r\n'
  assert.match(await reached(request), /x-jwt-assertion2: a\nclient-certs: b\nx-ssl: c/)
})

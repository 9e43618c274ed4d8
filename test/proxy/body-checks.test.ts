/** `force_json_validation` and `force_xml_validation`: requests whose body does not parse never reach a backend. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { BODY_CHECK } from '../../src/mediation/policies/well-formed-body.ts'
import { DEFAULT_FAULTS } from '../harness/default-sequences.ts'
import { flowsOf, set } from '../harness/flows.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { connectSecured, serverPlan } from '../harness/secured-peers.ts'

const backend = await ScriptedBackend.listen()
const APIS = [
  { context: '/plain', port: backend.port },
  { context: '/heads', port: backend.port, overrides: { mediation: await flowsOf({ request: set('X-Flow', 'ran') }) } },
]
const faults = { ...DEFAULT_FAULTS, sequences: [...DEFAULT_FAULTS.sequences, BODY_CHECK] }

/** A gateway with a listener of each kind. */
async function gatewayWith(http: Keys, https: Keys) {
  const listeners = { kinds: ['http', 'https'], tlsServer: serverPlan() } as const
  const started = await startGateway(APIS, { http, https, faults, ...listeners })
  after(() => started.stop())
  return started
}
type Checked = 'json' | 'xml'
type Keys = Readonly<Record<string, boolean>>

const JSON_ALONE = { force_json_validation: true, force_xml_validation: false }
const XML_ALONE = { force_json_validation: false, force_xml_validation: true }
const [jsonPlain, xmlPlain] = [await gatewayWith(JSON_ALONE, XML_ALONE), await gatewayWith(XML_ALONE, JSON_ALONE)]
/** Its TLS listener has the values of the other one. */
const jsonBoth = await gatewayWith({ force_json_validation: true }, {})
after(() => backend.close())

/** Listeners by what they check. */
const LISTENERS: readonly (readonly [name: string, checks: Checked, dial: () => Promise<Peer>])[] = [
  ['HTTP', 'json', () => connectPeer(jsonPlain.ports[0]!)],
  ['TLS', 'xml', () => securedPeer(jsonPlain.ports[1]!)],
  ['HTTP', 'xml', () => connectPeer(xmlPlain.ports[0]!)],
  ['TLS', 'json', () => securedPeer(xmlPlain.ports[1]!)],
  ['TLS without keys of its own', 'json', () => securedPeer(jsonBoth.ports[1]!)],
]

async function securedPeer(port: number): Promise<Peer> {
  return (await connectSecured(port)).peer
}

const PATHS = ['/plain/a', '/heads/a']
const MALFORMED: readonly (readonly [format: Checked, type: string, body: string])[] = [
  ['json', 'application/json', '{"a":'],
  ['json', 'application/vnd.own+json; charset=utf-8', '[1,]'],
  ['json', 'APPLICATION/JSON', '{"a":1}{'],
  ['xml', 'application/xml', '<a>'],
  ['xml', 'text/xml; charset=utf-8', '<a></b>'],
  ['xml', 'application/soap+xml; action="urn:x"', '<!DOCTYPE a><a/>'],
  ['xml', 'APPLICATION/VND.OWN+XML', '{}'],
]
const PASSING: readonly (readonly [type: string, body: string])[] = [
  ['application/json', '{"n":12345678901234567890}'],
  ['application/xml', '<a><b/></a>'],
  ['text/plain', '{"a":'],
  ['text/plain', '<a>'],
  ['application/json', ''],
  ['application/xml', ''],
]

const request = (path: string, type: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`

/** The body reaches the backend as it is. */
async function passes(dial: () => Promise<Peer>, path: string, type: string, body: string): Promise<void> {
  const client = await dial()
  const served = backend.next()
  client.send(request(path, type, body))
  const peer = await served
  await peer.untilText(`\r\n\r\n${body}`)
  assert.equal(/x-flow: ran/i.test(peer.text), path === '/heads/a')
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
  assert.equal((await takeResponse(client)).body, 'ok')
  client.destroy()
  peer.destroy()
}

for (const [listener, checks, dial] of LISTENERS) {
  for (const path of PATHS) {
    for (const [format, type, body] of MALFORMED) {
      const isRefused = format === checks
      const outcome = isRefused ? 'is 102520 and reaches no backend' : 'reaches the backend as it is'
      test(`force_${checks}_validation on ${listener}: ${body} of type ${type} to ${path} ${outcome}`, async () => {
        if (!isRefused) return passes(dial, path, type, body)
        const client = await dial()
        client.send(request(path, type, body))
        const response = await takeResponse(client)
        assert.equal(response.status, 400)
        assert.match(response.body, /102520/)
        assert.match(response.body, /Malformed payload/)
        client.destroy()
      })
    }
    for (const [type, body] of PASSING) {
      const what = `${body || 'no body'} of type ${type} to ${path}`
      test(`force_${checks}_validation on ${listener}: ${what} reaches the backend as it is`, () =>
        passes(dial, path, type, body))
    }
  }
}

/** Traces of the running program: from requests over several reactors to OTLP, Zipkin and the log, up to its end. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { examine } from '../../src/config/load.ts'
import { connectPeer, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { freePort, makeHome, startProgram } from '../harness/program.ts'

interface Received {
  readonly url: string
  readonly body: string
}

const received: Received[] = []
const receiver = createServer(async (request, response) => {
  let body = ''
  for await (const piece of request.setEncoding('utf8')) body += piece
  received.push({ url: request.url!, body })
  response.writeHead(202).end()
})
receiver.listen(0, '127.0.0.1')
await once(receiver, 'listening')
const { port } = receiver.address() as AddressInfo
const backend = await ScriptedBackend.listen(peer => void answerAll(peer))
const home = makeHome(backend.port)
after(() => {
  receiver.close()
  backend.close()
  home.remove()
})

const seen: string[] = []
async function answerAll(peer: Peer): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    await peer.untilRequest()
    for (const [, id] of peer.take().matchAll(/\r\ntraceparent: 00-([0-9a-f]{32})-/g)) {
      seen.push(id!)
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    }
  }
}

/** The log takes 100 spans in a second. */
const REQUESTS = 20

test('every receiver gets the trace of every request, the last ones as the program ends', async () => {
  const { program, port: listener } = await startProgram(home, [
    'transport.passthru_http.reactors=2',
    `transport.passthru_http.listener.parameters.port=${await freePort()}`,
    `tracing.otlp.endpoint="http://127.0.0.1:${port}/v1/traces"`,
    'tracing.otlp.protocol="http/json"',
    'tracing.batch_interval="60s"',
    'apim.open_tracer.remote_tracer.enable=true',
    'apim.open_tracer.remote_tracer.properties.hostname="127.0.0.1"',
    `apim.open_tracer.remote_tracer.properties.port=${port}`,
    'apim.open_tracer.log_tracer.enable=true',
  ])
  try {
    for (let request = 0; request < REQUESTS; request++) {
      const client = await connectPeer(listener)
      client.send('GET /t/x HTTP/1.1\r\nHost: a\r\n\r\n')
      await client.untilText('ok')
      client.destroy()
    }
    assert.equal(new Set(seen).size, REQUESTS)
    await program.err.until(new RegExp(seen.at(-1)!))
    assert.equal(received.length, 0)
    program.signal('SIGTERM')
    assert.equal((await program.exited).code, 0)
  } finally {
    await program.kill()
  }
  const of = (url: string) => received.filter(one => one.url === url).map(({ body }) => body)
  for (const [url, name] of [
    ['/v1/traces', '"traceId"'],
    ['/api/v2/spans', '"traceId"'],
  ] as const) {
    const text = of(url).join()
    for (const id of seen) assert.ok(text.includes(`${name}:"${id}"`), `${id} at ${url}`)
  }
  const spans = program.events.filter(({ msg }) => msg === 'span')
  assert.deepEqual(new Set(spans.map(({ TRACE_ID }) => TRACE_ID)), new Set(seen))
})

const MISTAKES: readonly (readonly [sets: readonly string[], names: RegExp])[] = [
  [
    ['apim.open_tracer.remote_tracer.enable=true', 'apim.open_tracer.remote_tracer.name="jaeger"'],
    /zipkin.*for other tracers set otlp\.endpoint/,
  ],
  [['tracing.otlp.endpoint="http://collector.example/v1/traces"', 'tracing.otlp.headers="a=s3cret"'], /https:\/\//],
  [['tracing.otlp.endpoint="https://collector.example/v1/traces"', 'tracing.otlp.headers="s3cret"'], /name=value/],
  [['tracing.sampling_ratio=1.5'], /sampling_ratio/],
]

test('a mistake in the configuration of traces is told without its secret', () => {
  for (const [sets, names] of MISTAKES) {
    const { errors } = examine(home.path, sets, `${home.path}/data`)
    const told = errors.map(error => JSON.stringify(error)).join()
    assert.match(told, names)
    assert.doesNotMatch(told, /s3cret/)
  }
})

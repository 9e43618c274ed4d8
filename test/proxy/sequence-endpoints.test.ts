/** Forms of endpoints in sequences and files, end to end: real worker threads, scripted backends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointForm } from '../../src/mediation/endpoint-plan.ts'
import { endpointOfFile, refusing, says, startBackend, startCalls } from '../harness/sequence-calls.ts'

const call = (endpoint: string) => `<call><endpoint>${endpoint}</endpoint></call>`
const http = (port: number, path: string) => `<http method="get" uri-template="http://127.0.0.1:${port}${path}"/>`
const within = (...forms: readonly string[]) => forms.map(form => `<endpoint>${form}</endpoint>`).join('')

test('a failover of two named endpoints goes to the second where the first refuses', async t => {
  const backend = await startBackend(t, { '/good': says(200, '{"from":"second"}') })
  const named = {
    down: await endpointOfFile(http(await refusing(t), '/bad')),
    up: await endpointOfFile(http(backend.port, '/good')),
  }
  const request = `${call('<failover><endpoint key="down"/><endpoint key="up"/></failover>')}<respond/>`
  const { ask } = await startCalls(t, { request }, backend.port, named)
  assert.deepEqual(await ask(), [200, '{"from":"second"}'])
  assert.deepEqual(await ask(), [200, '{"from":"second"}'])
})

test('failover inside loadbalance: groups take turns, and each one fails over within itself', async t => {
  const backend = await startBackend(t, { '/a': says(200, '{"from":"a"}'), '/b': says(200, '{"from":"b"}') })
  const down = http(await refusing(t), '/down')
  const failover = (path: string) => `<failover>${within(down, http(backend.port, path))}</failover>`
  const request = `${call(`<loadbalance>${within(failover('/a'), failover('/b'))}</loadbalance>`)}<respond/>`
  const { ask } = await startCalls(t, { request }, backend.port)
  const answers = [await ask(), await ask(), await ask(), await ask()]
  assert.deepEqual(
    answers.map(([, body]) => body),
    ['{"from":"a"}', '{"from":"b"}', '{"from":"a"}', '{"from":"b"}'],
  )
})

test('endpoints of a group have variables, where their paths are the same', async t => {
  const backend = await startBackend(t, { '/pets/7': says(200, '{}') })
  const path = '/pets/{uri.var.id}?q={uri.var.q}'
  const request = `<property name="uri.var.id" value="7"/><property name="uri.var.q" value="x y"/>
    ${call(`<failover>${within(http(await refusing(t), path), http(backend.port, path))}</failover>`)}<respond/>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask(), [200, '{}'])
  assert.equal(backend.received[0]!.target, '/pets/7?q=x%20y')
})

const PROPERTIES = `<property name="X-Literal" value="one" scope="transport"/>
  <property name="X-Own" expression="fn:concat($ctx:own, '-', json-eval($.a))" scope="transport"/>
  <property name="HTTP_METHOD" value="PUT" scope="axis2"/><property name="uri.var.id" value="7"/>`
const AUTHENTICATION = `<authentication><basicAuth><username>ann</username>
  <password>{get-property('geheim')}</password></basicAuth></authentication>`

const fieldsOf = (head: string) => ({
  literal: /^x-literal: (.*)\r$/im.exec(head)?.[1],
  own: /^x-own: (.*)\r$/im.exec(head)?.[1],
  authorization: /^authorization: (.*)\r$/im.exec(head)?.[1],
})

for (const place of ['in the sequence', 'in a file', 'as a member of a group']) {
  test(`properties and credentials of an endpoint ${place} reach the backend`, async t => {
    const seen: unknown[] = []
    const backend = await startBackend(t, {
      '/pets/7': ({ head, method, body }) => {
        seen.push({ ...fieldsOf(head), method, body })
        return [200, '{"done":true}']
      },
    })
    const url = `http://127.0.0.1:${backend.port}/pets/{uri.var.id}`
    const content = `<http uri-template="${url}">${AUTHENTICATION}</http>${PROPERTIES}`
    const named: Record<string, EndpointForm> =
      place === 'in the sequence' ? {} : { one: await endpointOfFile(content) }
    const key = place === 'in a file' ? '<endpoint key="one"/>' : ''
    const group = '<endpoint><failover><endpoint key="one"/></failover></endpoint>'
    const endpoint = place === 'in the sequence' ? `<endpoint>${content}</endpoint>` : key || group
    const request = `<property name="own" value="it"/><property name="geheim" value="pw"/>
      <call>${endpoint}</call><respond/>`
    const { ask } = await startCalls(t, { request }, backend.port, named)
    assert.deepEqual(await ask('POST /a/x', '{"a":"!"}'), [200, '{"done":true}'])
    const authorization = `Basic ${Buffer.from('ann:pw').toString('base64')}`
    assert.deepEqual(seen, [{ literal: 'one', own: 'it-!', authorization, method: 'PUT', body: '{"a":"!"}' }])
  })
}

test('the format of an endpoint of a file acts', async t => {
  const backend = await startBackend(t, { '/soap': ({ head }) => [200, JSON.stringify(/text\/xml/.test(head))] })
  const named = { soap: await endpointOfFile(`<address uri="http://127.0.0.1:${backend.port}/soap" format="soap11"/>`) }
  const request = '<call><endpoint key="soap"/></call><respond/>'
  const { ask } = await startCalls(t, { request }, backend.port, named)
  assert.deepEqual(await ask('POST /a/x', '{"a":"!"}'), [200, 'true'])
  assert.match(backend.received[0]!.body, /Envelope/)
})

for (const format of ['soap11', 'soap12'] as const) {
  for (const mediator of ['call', 'send'] as const) {
    test(`a GET that <${mediator}> sends in the format ${format} is POST to the URL of the endpoint`, async t => {
      const backend = await startBackend(t, { '/soap': says(200, '{"done":true}') })
      const url = `http://127.0.0.1:${backend.port}/soap`
      const request = `<payloadFactory><format><a xmlns="">$1</a></format><args><arg value="1"/></args>
        </payloadFactory>
        <${mediator}><endpoint><address uri="${url}" format="${format}"/></endpoint></${mediator}>
        ${mediator === 'call' ? '<respond/>' : ''}`
      const { ask } = await startCalls(t, { request }, backend.port)
      assert.deepEqual(await ask('GET /a/view/IBM?a=1'), [200, '{"done":true}'])
      const [{ method, target, body }] = backend.received as [(typeof backend.received)[number]]
      assert.deepEqual([method, target], ['POST', '/soap'])
      assert.match(body, /<soapenv:Body><a xmlns="">1<\/a>/)
    })
  }
}

test('<send> to an endpoint sets its properties', async t => {
  const backend = await startBackend(t, { '/x': ({ head }) => [200, JSON.stringify(fieldsOf(head).literal)] })
  const property = '<property name="X-Literal" value="sent" scope="transport"/>'
  const endpoint = `<endpoint><address uri="http://127.0.0.1:${backend.port}"/>${property}</endpoint>`
  const { ask } = await startCalls(t, { request: `<send>${endpoint}</send>` }, backend.port)
  assert.deepEqual(await ask(), [200, '"sent"'])
})

const CHOSEN: readonly (readonly [what: string, steps: string])[] = [
  ['<call> with key-expression', '<call><endpoint key-expression="json-eval($.to)"/></call><respond/>'],
  ['<call> with braces', '<call><endpoint key="{json-eval($.to)}"/></call><respond/>'],
  ['<send> with key-expression', '<send><endpoint key-expression="json-eval($.to)"/></send>'],
]

for (const [what, request] of CHOSEN) {
  test(`${what} finds an endpoint of the home, and an unknown name is a fault`, async t => {
    const backend = await startBackend(t, {
      '/one/x': says(200, '{"from":"one"}'),
      '/two/x': ({ head }) => [200, JSON.stringify(fieldsOf(head).literal)],
    })
    const property = '<property name="X-Literal" value="of two" scope="transport"/>'
    const named = {
      one: `http://127.0.0.1:${backend.port}/one`,
      two: await endpointOfFile(`<address uri="http://127.0.0.1:${backend.port}/two"/>${property}`),
    }
    const { ask, gateway } = await startCalls(t, { request }, backend.port, named)
    assert.deepEqual(await ask('POST /a/x', '{"to":"one"}'), [200, '{"from":"one"}'])
    assert.deepEqual(await ask('POST /a/x', '{"to":"two"}'), [200, '"of two"'])
    for (const name of ['none', '(destination)', 'constructor', '']) {
      const [status, body] = await ask('POST /a/x', JSON.stringify({ to: name }))
      assert.equal(status, 500, body)
      assert.match(body, /102551/)
    }
    const causes = gateway.reports.map(({ fields }) => String(fields.CAUSE_OF_ERROR))
    assert.ok(causes.some(cause => cause.includes('there is no endpoint of the name that key-expression finds')))
    assert.equal(backend.received.length, 2)
  })
}

test('<sequence> with key-expression runs a sequence of the home, and an unknown name is a fault', async t => {
  const backend = await startBackend(t, { '/x': ({ head }) => [200, JSON.stringify(fieldsOf(head).literal)] })
  const mark = (text: string) => `<property name="X-Literal" value="${text}" scope="transport"/>`
  const request = '<sequence key-expression="fn:concat(\'to-\', $trp:X-Own)"/>'
  const others = { 'to-a': mark('a'), 'to-b': mark('b') }
  const { ask, gateway } = await startCalls(t, { request, others }, backend.port)
  assert.deepEqual(await ask('GET /a/x', '', 'X-Own: a\r\n'), [200, '"a"'])
  assert.deepEqual(await ask('GET /a/x', '', 'X-Own: b\r\n'), [200, '"b"'])
  const [status, body] = await ask('GET /a/x', '', 'X-Own: c\r\n')
  assert.deepEqual([status, /"code":(\d+)/.exec(body)?.[1]], [500, '102544'])
  const causes = gateway.reports.map(({ fields }) => String(fields.CAUSE_OF_ERROR))
  assert.ok(causes.some(cause => cause.includes('there is no sequence of the name that its key finds')))
})

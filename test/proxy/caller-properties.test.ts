/** D826: properties of caller and API, as flows on the reactor and on workers, and sequences of codes, read them. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { NO_ACCESS, PLAIN_API } from '../harness/api-plan.ts'
import { faultsWith } from '../harness/default-sequences.ts'
import { type FlowTexts, flowsOf } from '../harness/flows.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { OWN_ISSUER, ScriptedControl } from '../harness/scripted-control.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { operation } from '../harness/throttled-gateway.ts'

const PROPERTIES: Readonly<Record<string, string>> = {
  '$ctx:api.ut.userId': 'alice@carbon.super',
  '$ctx:api.ut.userName': 'alice@carbon.super',
  '$ctx:api.ut.consumerKey': 'shop',
  '$ctx:api.ut.application.name': 'The shop',
  '$ctx:api.ut.application.id': 'shop',
  '$ctx:api.ut.api': 'Pets',
  '$ctx:api.ut.version': '1.0.0',
  '$ctx:api.ut.api_version': '1.0.0',
  '$ctx:api.ut.context': '/CONTEXT',
  '$ctx:api.ut.resource': '/dogs/7?q=1',
  '$ctx:api.ut.HTTP_METHOD': 'GET',
  '$ctx:api.ut.hostName': 'localhost',
  '$ctx:api.ut.apiPublisher': 'ann',
  '$ctx:AM_KEY_TYPE': 'PRODUCTION',
  '$axis2:TransportInURL': '/CONTEXT/dogs/7?q=1',
  "get-property('axis2', 'TransportInURL')": '/CONTEXT/dogs/7?q=1',
  '$ctx:SYNAPSE_REST_API': 'ann--Pets:v1.0.0',
  '$ctx:API_NAME': 'Pets',
  "get-property('api.ut.userId')": 'alice@carbon.super',
}
const SHOW = Object.keys(PROPERTIES).map((name, at) => {
  return `<property name="X-${at}" expression="${name}" scope="transport"/>`
})
const READS_BODY = '<property name="b" expression="json-eval($.b)"/>'
const THROWS = '<throwError type="T" errorMessage="m"/>'
const show = SHOW.join('')

/** Flows by context, and the backend that each needs. */
const FLOWS: Readonly<Record<string, FlowTexts>> = {
  'response-reactor': { response: show },
  'response-worker': { response: show + READS_BODY },
  'both-workers': { request: READS_BODY, response: show + READS_BODY },
  'mixed-worker': { request: '<property name="own" value="1"/>', response: show + READS_BODY },
  'mixed-reactor': { request: READS_BODY, response: show },
  'fault-reactor': { request: THROWS, fault: show },
  'fault-worker': { request: THROWS, fault: `${show}${READS_BODY}<respond/>` },
  'code-sequence': { request: THROWS },
  'of-a-script': {
    response: `<script language="js">mc.setProperty('user', mc.getProperty('api.ut.' + 'userId'));</script>
      <property name="X-Script" expression="$ctx:user" scope="transport"/>`,
  },
}

const backend = await StrictBackend.listen()
const apis = await Promise.all(
  Object.entries(FLOWS).map(async ([context, texts]) => {
    const access = { ...NO_ACCESS, api: 'Pets:1.0.0', provider: 'ann', schemes: ['oauth2'] } as const
    const resources = [operation('/dogs/*'), operation('/open', undefined, 'None')]
    const mediation = await flowsOf(texts)
    return { context: `/${context}`, port: backend.port, overrides: { name: 'Pets', access, resources, mediation } }
  }),
)
const open = { access: NO_ACCESS, mediation: await flowsOf({ response: show }) }
const openApi = { context: '/open-api', port: backend.port, overrides: open }
const lifecycle = { ...PLAIN_API.lifecycle, state: 'PROTOTYPED' } as const
const prototyped = { ...apis[0]!.overrides, lifecycle, mediation: open.mediation }
const prototype = { context: '/prototype', port: backend.port, overrides: prototyped }
const gateway = await startGateway([...apis, openApi, prototype], {
  hasFilterChain: true,
  authChanges: { issuers: [OWN_ISSUER] },
  faults: await faultsWith({ fault: `${show}<respond/>` }),
})
const control = new ScriptedControl(gateway.authState)
control.subscribe('shop', 'Pets:1.0.0')
const application = {
  id: 'shop',
  name: 'The shop',
  owner: 'o',
  tenant: 'carbon.super',
  tier: 'Unlimited',
  attributes: {},
}
control.update({ applications: [application] })
after(() => {
  gateway.stop()
  backend.close()
})

async function ask(target: string, lines: string) {
  const client = await connectPeer(gateway.port)
  client.send(`GET ${target} HTTP/1.1\r\nHost: h\r\n${lines}\r\n`)
  const { fields } = await takeResponse(client)
  client.destroy()
  return fields
}

for (const context of Object.keys(FLOWS)) {
  test(`properties of caller and API: ${context}`, async () => {
    const fields = await ask(`/${context}/dogs/7?q=1`, `Authorization: Bearer ${control.token('shop')}\r\n`)
    if (context === 'of-a-script') {
      assert.deepEqual(fields.get('x-script'), [PROPERTIES['$ctx:api.ut.userId']])
      return
    }
    const seen = Object.fromEntries(Object.keys(PROPERTIES).map((name, at) => [name, fields.get(`x-${at}`)?.join()]))
    const wanted = Object.entries(PROPERTIES).map(([name, value]) => [name, value.replace('CONTEXT', context)])
    assert.deepEqual(seen, Object.fromEntries(wanted))
  })
}

for (const path of ['/response-reactor/open', '/response-worker/open']) {
  test(`a resource without authentication has the user anonymous, its address as application: ${path}`, async () => {
    const fields = await ask(path, '')
    assert.deepEqual(
      [0, 2, 3, 4].map(at => fields.get(`x-${at}`)?.join()),
      ['anonymous', '', '', '127.0.0.1'],
    )
  })
}

for (const path of ['/open-api', '/prototype']) {
  test(`an API that authenticates no caller has the user anonymous: ${path}`, async () => {
    const fields = await ask(`${path}/dogs/7`, '')
    assert.deepEqual(
      [0, 1, 2].map(at => fields.get(`x-${at}`)?.join()),
      ['anonymous', 'anonymous', ''],
    )
  })
}

/** What `start --sample` adds: the address of the backend, refusals, and the token for the sample API. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { LoadedApis } from '../../src/apis/api-projects.ts'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { SampleError, sampleToken, startSample } from '../../src/cli/sample.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { openProject } from '../harness/open-project.ts'
import { freePort } from '../harness/program.ts'

interface Project {
  readonly name: string
  readonly context: string
  readonly production_endpoints?: object
}

function homeWith(t: TestContext, { name, context, production_endpoints }: Project, file = 'apis/Sample/api.yaml') {
  const endpointConfig = { endpoint_type: 'http', production_endpoints }
  return temporaryHome(t, { [file]: openProject({ name, context, endpointConfig }) })
}

function load(home: string): LoadedApis {
  return new ApiProjects(home).load()
}

test('the sample backend listens at the production endpoint of the API Sample', async t => {
  const port = await freePort()
  const url = `http://localhost:${port}/base`
  const home = homeWith(t, { name: 'Sample', context: '/trial', production_endpoints: { url } })
  const { backend, echoPath, api, close } = await startSample(load(home), home)
  t.after(close)
  assert.deepEqual([backend, echoPath, api], [`http://localhost:${port}`, '/trial/1.0.0/echo', 'Sample:1.0.0'])
  const response = await fetch(`${backend}/echo/x`)
  assert.equal(response.status, 200)
  const taken =
    /^the sample backend cannot listen on localhost:\d+: the port is taken: .*change the port .* in \S*api.yaml$/
  await assert.rejects(
    startSample(load(home), home),
    error => error instanceof SampleError && taken.test(error.message),
  )
})

const REFUSED: readonly (readonly [what: string, project: Project, message: RegExp])[] = [
  [
    'without an API Sample',
    { name: 'Other', context: '/other', production_endpoints: { url: 'http://127.0.0.1:1' } },
    /^--sample needs the API Sample, and the home has none: add \S*apis\/Sample\/api\.yaml, or start without --sample$/,
  ],
  [
    'with an endpoint on another machine',
    { name: 'Sample', context: '/s', production_endpoints: { url: 'http://backend.example:8288' } },
    /loopback interface, .* it is http:\/\/backend\.example:8288: edit \S*apis\/Sample\/api\.yaml, or start without/,
  ],
  [
    'with an https endpoint',
    { name: 'Sample', context: '/s', production_endpoints: { url: 'https://127.0.0.1:8288' } },
    /must be an http URL of the loopback interface, .* it is https:\/\/127\.0\.0\.1:8288: edit/,
  ],
]
for (const [what, project, message] of REFUSED) {
  test(`--sample is refused ${what}`, async t => {
    const home = homeWith(t, project)
    await assert.rejects(
      startSample(load(home), home),
      error => error instanceof SampleError && message.test(error.message),
    )
  })
}

/** Actions that the key manager gets, if it has these already. */
async function actionsWith(
  has: { application: boolean; keys: boolean; subscription: boolean },
  healthcare: { readonly api: string; readonly searchPath: string } | null = null,
) {
  const actions: string[] = []
  const token = await sampleToken({ api: 'Sample:2.0.0', healthcare }, ({ action, api, scopes }) => {
    const of = api ?? scopes
    actions.push(of === undefined ? action : `${action} ${String(of)}`)
    const results: Readonly<Record<string, object>> = {
      'application list': { applications: [{ name: 'Other' }, ...(has.application ? [{ name: 'Sample' }] : [])] },
      'application show': {
        keys: [{ keyType: 'SANDBOX' }, ...(has.keys ? [{ keyType: 'PRODUCTION' }] : [])],
        subscriptions: has.subscription ? [{ api: 'Sample:2.0.0' }] : [],
      },
      token: { accessToken: 'a.b.c' },
    }
    return Promise.resolve(results[action] ?? {})
  })
  assert.equal(token, 'a.b.c')
  return actions
}

test('the first start creates application, subscription and keys; the next start only gets a token', async () => {
  assert.deepEqual(await actionsWith({ application: false, keys: false, subscription: false }), [
    'application list',
    'application create',
    'application show',
    'subscription add Sample:2.0.0',
    'key generate',
    'token',
  ])
  const again = await actionsWith({ application: true, keys: true, subscription: true })
  assert.deepEqual(again, ['application list', 'application show', 'token'])
})

test('with the healthcare API the application subscribes to it, and the token has its scopes', async () => {
  const healthcare = { api: 'HealthcareService:1.0.0', searchPath: '/healthcare/HealthcareService' }
  const actions = await actionsWith({ application: true, keys: true, subscription: true }, healthcare)
  const wanted = ['subscription add HealthcareService:1.0.0', 'token system/HealthcareService.cruds']
  assert.deepEqual(actions, ['application list', 'application show', ...wanted])
})

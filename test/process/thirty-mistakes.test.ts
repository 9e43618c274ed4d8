/** `check` of a home of thirty files with one mistake each: each is told once, with its line and a remedy. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { argumentsFor, temporaryHome, Transcript } from '../config/temporary-home.ts'

/** An exported API without a mistake; 12 lines. */
function project(name: string): string {
  return `type: api
version: v4.3.0
data:
  name: ${name}
  context: /${name.toLowerCase()}
  version: "1"
  securityScheme: [oauth2]
  policies: [Gold]
  endpointConfig:
    endpoint_type: http
    production_endpoints: {url: "http://p", config: {factor: 2}}
  operations: [{target: /x, verb: GET}]
`
}

/** An OpenAPI document without a mistake; 9 lines. */
function document(title: string): string {
  return `openapi: 3.0.3
info:
  title: ${title}
  version: "1"
servers: [{url: "https://h/${title}"}]
paths:
  /x:
    get:
      responses: {"200": {description: ok}}
`
}

/** [part of a project, mistake in its place, line, text of the diagnostic]. */
const IN_PROJECTS: readonly (readonly [right: string, wrong: string, line: number, said: string])[] = [
  ['type: api', 'type: apis', 1, 'api'],
  ['v4.3.0', '4.x', 2, 'v4'],
  ['  securityScheme:', '  securitySchema:', 7, 'did you mean securityScheme?'],
  ['[oauth2]', '[oauth3]', 7, 'oauth2'],
  ['  operations:', '  operatons:', 12, 'did you mean operations?'],
  ['verb: GET', 'verb: GET, throtlingPolicy: Gold', 12, 'did you mean throttlingPolicy?'],
  ['verb: GET', 'verb: GTE', 12, 'GET'],
  ['verb: GET', 'verb: GET, authtype: None', 12, 'did you mean authType?'],
  ['verb: GET', 'verb: GET, authType: Nobody', 12, 'None'],
  ['verb: GET', 'verb: GET, scope: [s]', 12, 'did you mean scopes?'],
  ['target: /x', 'target: "/{x}{y}"', 12, 'put a character between'],
  ['config:', 'conifg:', 11, 'did you mean config?'],
  ['factor', 'factro', 11, 'did you mean factor?'],
  ['"http://p"', '"htp://p"', 11, 'http'],
  ['endpoint_type: http', 'endpoint_type: htpp', 10, 'http'],
  ['  operations', '    sandboxEndpoints: {url: "http://s"}\n  operations', 12, 'did you mean sandbox_endpoints?'],
  ['  policies:', '  corsConfig: {}\n  policies:', 8, 'did you mean corsConfiguration?'],
  ['  policies:', '  polices:', 8, 'did you mean policies?'],
  ['  policies: [Gold]', '  transport: [htps]', 8, 'https'],
  ['  policies: [Gold]', '  escapedSlashes: keep', 8, 'pass'],
]

/** The same of documents. */
const IN_DOCUMENTS: typeof IN_PROJECTS = [
  [
    'paths:',
    'x-wso2-cors: {accessControlAllowOrigin: ["https://a"]}\npaths:',
    6,
    'did you mean accessControlAllowOrigins?',
  ],
  ['paths:', 'x-wso2-basepath: /a\npaths:', 6, 'did you mean x-wso2-basePath?'],
  ['    get:', '    x-auth-typ: None\n    get:', 8, 'did you mean x-auth-type?'],
  ['paths:', 'x-wso2-aplication-security: {}\npaths:', 6, 'did you mean x-wso2-application-security?'],
  ['https://h/', '', 5, 'host'],
]

/** [file, text, line, text of the diagnostic]. */
const OTHERS: readonly (readonly [file: string, text: string, line: number, said: string])[] = [
  ['apis/broken.json', '{"openapi": "3.0.3",\n"info": {', 2, 'JSON'],
  ['applications/a.yaml', 'name: A\nsubscription: [{api: "Good:1"}]\n', 2, 'did you mean subscriptions?'],
  ['applications/b.yaml', 'name: B\nsubscriptions:\n  - {api: "Nobody:1"}\n', 3, 'add the API'],
  ['applications/c.yaml', 'name: C\nkeys: [{consumerKey: c, issuer: "https://i"}]\n', 2, 'apim.jwt.issuer'],
  ['deployment.toml', '[server]\nofset = 1\n', 2, 'did you mean offset?'],
]

const MISTAKES: typeof OTHERS = [
  ...IN_PROJECTS.map(([right, wrong, line, said], i) => {
    return [`apis/P${i}/api.yaml`, project(`P${i}`).replace(right, wrong), line, said] as const
  }),
  ...IN_DOCUMENTS.map(([right, wrong, line, said], i) => {
    return [`apis/d${i}.yaml`, document(`D${i}`).replace(right, wrong), line, said] as const
  }),
  ...OTHERS,
]

test('thirty files with one mistake each: thirty diagnostics, each with line and remedy', async t => {
  assert.equal(MISTAKES.length, 30)
  const home = temporaryHome(t, {
    ...{ 'apis/Good/api.yaml': project('Good'), 'apis/good.yaml': document('GoodToo'), 'deployment.toml': '' },
    ...Object.fromEntries(MISTAKES.map(([file, text]) => [file, text])),
  })
  const output = new Transcript()
  assert.notEqual(await check(argumentsFor(home), output), 0)
  const lines = output.text.split('\n').filter(line => /^(?:error|warning) /.test(line))
  for (const [file, , line, said] of MISTAKES) {
    const [about = '', ...others] = lines.filter(each => each.includes(`${home}/${file}:`))
    assert.deepEqual(others, [])
    assert.match(about, new RegExp(`${file}:${line}[: ]`))
    assert.match(about, /\(.+\)$/)
    assert.ok(about.includes(said), about)
  }
  assert.equal(lines.length, 30, output.text)
})

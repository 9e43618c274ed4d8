/** Issue 14: thirty files with one mistake each give `check` thirty diagnostics with line and remedy, none silent. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { argumentsFor, Transcript, temporaryHome } from '../config/temporary-home.ts'

type Kind = 'error' | 'warning'

/** [line of the mistake, what check says of it, the file; error unless named] */
type Mistake = readonly [line: number, said: RegExp, text: string, kind?: Kind]

const CONFIGURATIONS: readonly Mistake[] = [
  [2, /server\.ofset.*did you mean offset/, '[server]\nofset = 1\n'],
  [1, /sever.*did you mean \[?server/, '[sever]\noffset = 1\n'],
  [2, /offset = "ten": expected a whole number/, '[server]\noffset = "ten"\n'],
  [2, /server_role = "gateway": expected one of/, '[server]\nserver_role = "gateway"\n'],
  [2, /base_path = 5: expected text in quotes/, '[server]\nbase_path = 5\n'],
  [3, /offset/, '[server]\noffset = 1\noffset = 2\n'],
  [2, /not valid TOML.*close the text with a quotation mark/, '[server]\nhostname = "a.example\n'],
  [1, /not valid TOML.*end a header with \]/, '[server\noffset = 1\n'],
  [2, /not valid TOML.*write text in quotation marks/, '[server]\nhostname = a.example\n'],
  [3, /not valid TOML.*keep one of them/, '[server]\noffset = 1\noffset = 2\n'],
  [
    3,
    /port.*two listeners must not share a port/,
    '[transport.passthru_http]\nreactors = 1\nlistener.parameters.port = 8253\n',
  ],
  [2, /io_buffer_size = 100: expected/, '[transport.passthru_http]\nio_buffer_size = 100\n'],
  [
    2,
    /http\.socket\.timeout = "3 minutes": expected/,
    '[transport.passthru_http]\n"http.socket.timeout" = "3 minutes"\n',
  ],
  [
    2,
    /SSLVerifyClient = "yes": expected one of/,
    '[transport.passthru_https]\nlistener.parameters.SSLVerifyClient = "yes"\n',
  ],
  [2, /sender\.http\.proxyPort.*must be set together/, '[transport.passthru_http]\nsender.http.proxyPort = 8080\n'],
  [3, /jwks\.url = 7: expected a URL/, '[[apim.jwt.issuer]]\nname = "A"\njwks.url = 7\n'],
  [1, /https_endpoint/, '[[apim.gateway.environment]]\nws_endpoint = "ws://h.example"\n'],
  [3, /allow_credentials/, '[apim.cors]\nallow_origins = ["*"]\nallow_credentials = true\n'],
  [2, /type = "postgres": expected one of/, '[database.apim_db]\ntype = "postgres"\n'],
  [2, /password.*no environment variable NOBODY_SETS_THIS/, '[super_admin]\npassword = "$env{NOBODY_SETS_THIS}"\n'],
  [2, /username: has no effect unless .*type is mysql or postgre/, '[database.apim_db]\nusername = "u"\n', 'warning'],
  [
    2,
    /event_debugger_port: is accepted and not acted on/,
    '[mediation]\nsynapse.event_debugger_port = 9006\n',
    'warning',
  ],
  [
    3,
    /claims_extractor_impl.*not there/,
    '[apim.jwt]\nenable = true\nclaims_extractor_impl = "x.js"\nenable_user_claims = true\n',
  ],
]

const api = (change: (lines: string) => string): string =>
  change(
    'type: api\nversion: v4.0.0\ndata:\n  name: Orders\n  context: /orders\n  version: 1.0.0\n' +
      '  endpointConfig:\n    endpoint_type: http\n    production_endpoints:\n      url: http://h.example\n' +
      '  operations:\n    - target: /list\n      verb: GET\n',
  )

const PROJECTS: readonly Mistake[] = [
  [5, /context = "?orders"?: must start with "\/"/, api(it => it.replace('/orders', 'orders'))],
  [11, /operatons.*did you mean.*operations/, api(it => it.replace('operations', 'operatons'))],
  [
    7,
    /securitySchema.*did you mean.*securityScheme/,
    api(it => it.replace('  endpointConfig', '  securitySchema: [oauth2]\n  endpointConfig')),
  ],
  [10, /url/, api(it => it.replace('http://h.example', 'h.example'))],
  [13, /verb/, api(it => it.replace('GET', 'FETCH'))],
  [14, /authtype.*did you mean.*authType/, api(it => `${it}      authtype: None\n`)],
  [1, /type/, api(it => it.replace('type: api', 'type: apis'))],
  [4, /not valid YAML.*indent with spaces/, api(it => it.replace('  name: Orders', '\tname: Orders'))],
  [4, /name/, api(it => it.replace('name: Orders', 'name: [Orders]'))],
  [5, /not valid YAML.*close the bracket, brace or quotation mark/, api(it => it.replace('Orders', '"Orders'))],
  [5, /not valid YAML.*put a text with a colon in quotation marks/, api(it => it.replace('/orders', 'a: b'))],
  [5, /not valid YAML.*keep one of them/, api(it => it.replace('context', 'name'))],
]

const APPLICATION = 'name: Shop\nkeys: [{consumerKey: k}]\nsubscriptions: []\n'

const APPLICATIONS: readonly Mistake[] = [
  [2, /kys.*did you mean.*keys/, APPLICATION.replace('keys', 'kys')],
  [3, /api = "Nothing:1": is no API of this home/, APPLICATION.replace('[]', '[{api: "Nothing:1"}]'), 'warning'],
]

const DOCUMENT = `{"openapi": "3.0.3", "info": {"title": "Stock", "version": "1"},
"servers": [{"url": "http://h.example/s"}],
"paths": {"/items": {"get": {"responses": {"200": {"description": "ok"}}}}}}`

const DOCUMENTS: readonly Mistake[] = [
  [2, /not valid JSON.*correct the file/, DOCUMENT.replace('"servers":', '"servers"')],
  [2, /servers\[0\]\.url/, DOCUMENT.replace('http:', 'ftp:')],
  [3, /x-auth-typ.*did you mean.*x-auth-type/, DOCUMENT.replace('"responses"', '"x-auth-typ": "None", "responses"')],
]

async function saysOnce(t: TestContext, path: string, [line, said, text, kind = 'error']: Mistake): Promise<void> {
  const home = temporaryHome(t, { 'deployment.toml': '', [path]: text })
  const output = new Transcript()
  const code = await check(argumentsFor(home, { json: true }), output)
  const found = JSON.parse(output.text)
  const all = [
    ...found.errors.map((each: object) => ['error', each]),
    ...found.warnings.map((each: object) => ['warning', each]),
  ]
  assert.equal(all.length, 1, output.text)
  const [kindSaid, diagnostic] = all[0]
  assert.deepEqual([kindSaid, code], [kind, kind === 'error' ? 78 : 0])
  // Errors of syntax have a column too.
  assert.equal(diagnostic.where.replace(/(:\d+):\d+$/, '$1'), `${home}/${path}:${line}`)
  assert.match(formatDiagnostic(diagnostic), said)
  assert.notEqual(diagnostic.hint, '', 'a remedy')
}

const FILES = [
  ...CONFIGURATIONS.map(mistake => ['deployment.toml', mistake] as const),
  ...PROJECTS.map(mistake => ['apis/Orders/api.yaml', mistake] as const),
  ...DOCUMENTS.map(mistake => ['apis/stock.json', mistake] as const),
  ...APPLICATIONS.map(mistake => ['applications/a.yaml', mistake] as const),
]

test('there are thirty files or more', () => assert.ok(FILES.length >= 30))

for (const [path, mistake] of FILES) {
  const [line, said] = mistake
  test(`one mistake in ${path}:${line} is reported once with a remedy: ${said.source}`, t => saysOnce(t, path, mistake))
}

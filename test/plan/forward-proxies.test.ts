/** Forward proxies: host patterns, the proxy of each backend, and diagnostics for invalid keys. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { HostPattern } from '../../src/config/host-pattern.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { type ForwardProxies, readForwardProxies } from '../../src/plan/forward-proxies.ts'
import { temporaryHome } from '../config/temporary-home.ts'

/** [pattern, matching hosts, other hosts]. */
const PATTERNS: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['*', ['a', 'a.example', '10.0.0.1', '[::1]'], []],
  ['.*', ['a', 'a.example', '[::1]'], []],
  ['a.example', ['a.example', 'a.example.'], ['b.a.example', 'aXexample', 'a.example.org', 'xa.example']],
  ['A.Example', ['a.example'], []],
  ['a\\.example', ['a.example'], ['aXexample']],
  ['*.example.com', ['a.example.com', 'b.a.example.com'], ['example.com', 'aexample.com', 'a.example.com.evil']],
  // The spelling of the reference platform, where the last dots would fit any character.
  ['.*.example.com', ['a.example.com', 'b.a.example.com'], ['example.com', 'aXexample.com', 'a.exampleXcom']],
  ['.*\\.example\\.com', ['a.example.com', 'b.a.example.com'], ['example.com', 'a.exampleXcom']],
  ['*example.com', ['example.com', 'a.example.com', 'anexample.com'], ['example.com.evil']],
  ['.*internal.*', ['internal', 'my-internal-host.example', 'internal.example'], ['intern.al']],
  ['.*5.*', ['5', 'node5', 'node55.example'], ['node6']],
  ['node*.example', ['node1.example', 'node.example', 'node1.a.example'], ['node1.example.org', 'anode.example']],
  ['*a*b*', ['ab', 'xaxbx', 'a.b'], ['ba', 'aa']],
  ['ab*ba', ['abba', 'ab.ba', 'abxba'], ['aba', 'ab', 'ba']],
  ['a*b*b', ['abb', 'axbxb'], ['ab', 'bab']],
  // The prefix of an address: its dots are dots.
  ['10.1.*', ['10.1.0.1', '10.1.255.9'], ['10.10.0.1', '10.1', '10.12.3.4']],
  ['10\\.1\\..*', ['10.1.0.1'], ['10.10.0.1']],
  ['10.*', ['10.0.0.1'], ['100.0.0.1', '110.0.0.1']],
  ['*.0.0.1', ['127.0.0.1', '10.0.0.1'], ['127.0.0.10']],
  ['127.0.0.1', ['127.0.0.1'], ['127.0.0.10', '127.0.0.1.example']],
  ['::1', ['[::1]', '::1'], ['[::2]']],
  ['[::1]', ['[::1]'], ['[::11]']],
  ['FD00:0:0:0:0:0:0:0001', ['[fd00::1]'], ['[fd00::2]']],
  ['[fd00::*]', ['[fd00::1]', '[fd00::1:2]'], ['[fd01::1]', 'fd00.example']],
  ['bücher.example', ['xn--bcher-kva.example'], ['bucher.example']],
  ['my_backend', ['my_backend'], ['mybackend']],
  [' a.example ', ['a.example'], []],
]

for (const [text, fitting, others] of PATTERNS) {
  test(`the pattern ${text} matches its hosts and no others`, () => {
    const pattern = HostPattern.read(text)!
    for (const host of fitting) assert.equal(pattern.matches(host), true, host)
    for (const host of others) assert.equal(pattern.matches(host), false, host)
  })
}

const NO_PATTERNS = [
  '',
  '.',
  '(a|b).example',
  'a+.example',
  '[ab].*.example',
  '^a$',
  'a.example:80',
  'a.example/path',
  'http://a.example',
  'user@a.example',
  '10.0.0.0/8',
  'fd00::/8',
  'fd00::g',
  'a b',
  'a%2eexample',
  '\\d*',
  'bücher*.example',
]

for (const text of NO_PATTERNS) test(`not a pattern: "${text}"`, () => assert.equal(HostPattern.read(text), undefined))

test('a pattern with many * takes time proportional to the host', () => {
  const pattern = HostPattern.read(`${'a*'.repeat(60)}b`)!
  assert.equal(pattern.matches('a'.repeat(250)), false)
  assert.equal(pattern.matches(`${'a'.repeat(250)}b`), true)
})

const HTTP = 'transport.passthru_http'
const HTTPS = 'transport.passthru_https'
const ROWS = 'transport.http.proxy_profile'
const SECURED_ROWS = 'transport.http.secured_proxy_profile'

interface Loaded extends ForwardProxies {
  /** Errors and warnings, with the file named `F`. */
  readonly said: readonly string[]
}

async function load(t: TestContext, toml: string): Promise<Loaded> {
  const home = temporaryHome(t, { 'deployment.toml': toml })
  const { configuration, resolved } = loadConfiguration(home, [])
  const proxies = await readForwardProxies(configuration, resolved)
  const said = [...proxies.errors, ...proxies.warnings].map(diagnostic =>
    formatDiagnostic(diagnostic).replaceAll(join(home, 'deployment.toml'), 'F'),
  )
  return { ...proxies, said }
}

function row(table: string, targets: string, host: string, more = ''): string {
  return `[[${table}]]\ntarget_hosts = ${targets}\nproxy_host = "${host}"\nproxy_port = 3128\n${more}\n`
}

function profile(targets: string, host: string, more = ''): string {
  const port = '<proxyPort>3128</proxyPort>'
  return `<profile><targetHosts>${targets}</targetHosts><proxyHost>${host}</proxyHost>${port}${more}</profile>`
}

function xml(section: string, text: string): string {
  return `[${section}]\nsender.proxyProfiles = '''${text}'''\n`
}

/** Hosts and the proxy of each; '' for none. */
function assertRoutes(
  { proxyFor }: ForwardProxies,
  secured: boolean,
  expected: Readonly<Record<string, string>>,
): void {
  for (const [host, proxy] of Object.entries(expected)) {
    assert.equal(proxyFor(secured, host)?.host ?? null, proxy || null, host)
  }
}

test('without keys no backend has a proxy', async t => {
  const proxies = await load(t, '')
  assertRoutes(proxies, false, { 'a.example': '', localhost: '' })
  assertRoutes(proxies, true, { 'a.example': '' })
  assert.deepEqual(proxies.said, [])
})

test('sender.http.proxyHost is for all backends but nonProxyHosts, separately for plain and TLS backends', async t => {
  const keys = (proxy: string): string =>
    `sender.http.proxyHost = "${proxy}"\nsender.http.proxyPort = "3128"\n` +
    'sender.http.nonProxyHosts = "localhost|.*.inner.example,10.1.*| "\n'
  const proxies = await load(t, `[${HTTP}]\n${keys('plain')}[${HTTPS}]\n${keys('secured')}`)
  for (const [secured, proxy] of [
    [false, 'plain'],
    [true, 'secured'],
  ] as const) {
    const none = { localhost: '', 'a.inner.example': '', '10.1.2.3': '' }
    assertRoutes(proxies, secured, { ...none, 'inner.example': proxy, '127.0.0.1': proxy, '[::1]': proxy })
  }
  assert.deepEqual(proxies.proxyFor(false, 'a.example'), { host: 'plain', port: 3128, authorization: '' })
  const plainOnly = await load(t, `[${HTTP}]\n${keys('plain')}`)
  assertRoutes(plainOnly, true, { 'a.example': '' })
})

test('the first profile that matches holds, `*` after the others, sender.http.proxyHost last', async t => {
  const toml =
    `[${HTTP}]\nsender.http.proxyHost = "fallback"\nsender.http.proxyPort = 1\n` +
    row(ROWS, '["x.example", "*"]', 'any') +
    row(ROWS, '"a.example, *.b.example"', 'first', 'bypass_hosts = ["c.b.example"]') +
    row(ROWS, '["*.example"]', 'second')
  const proxies = await load(t, toml)
  assertRoutes(proxies, false, {
    'x.example': 'any',
    'a.example': 'first',
    'a.b.example': 'first',
    'c.b.example': '',
    'd.example': 'second',
    'e.org': 'any',
  })
  assert.deepEqual(proxies.said, [])
})

test('if no profile matches, sender.http.proxyHost holds', async t => {
  const fallback = `[${HTTP}]\nsender.http.proxyHost = "fallback"\nsender.http.proxyPort = 1\n`
  const proxies = await load(t, fallback + row(ROWS, '["a.example"]', 'first'))
  assertRoutes(proxies, false, { 'a.example': 'first', 'b.example': 'fallback' })
})

test('the rows of one table do not apply to the other transport', async t => {
  const proxies = await load(t, row(ROWS, '["*"]', 'plain') + row(SECURED_ROWS, '["a.example"]', 'secured'))
  assertRoutes(proxies, false, { 'a.example': 'plain', 'b.example': 'plain' })
  assertRoutes(proxies, true, { 'a.example': 'secured', 'b.example': '' })
})

for (const [shape, wrap] of [
  ['without an enclosing element', (text: string) => text],
  ['within a parameter', (text: string) => `<parameter name="proxyProfiles">${text}</parameter>`],
  [
    'within proxyProfiles, with an XML declaration',
    (text: string) => `<?xml version="1.0"?><proxyProfiles>${text}</proxyProfiles>`,
  ],
] as const) {
  test(`XML profiles ${shape} are read like rows`, async t => {
    const more = '<bypass>c.example,d.example</bypass><proxyUserName>u</proxyUserName><proxyPassword>p</proxyPassword>'
    const text = wrap(`\n${profile('a.example, .*.b.example', 'first', more)}\n${profile('*', 'any')}\n`)
    const proxies = await load(t, xml(HTTP, text))
    assertRoutes(proxies, false, { 'a.example': 'first', 'c.b.example': 'first', 'z.example': 'any' })
    assertRoutes(proxies, true, { 'a.example': '' })
    assert.equal(proxies.proxyFor(false, 'a.example')!.authorization, `Basic ${btoa('u:p')}`)
    assert.deepEqual(proxies.said, [])
  })
}

test('rows and XML profiles are combined, rows first', async t => {
  const text = profile('a.example,b.example', 'xml')
  const proxies = await load(t, row(SECURED_ROWS, '["a.example"]', 'row') + xml(HTTPS, text))
  assertRoutes(proxies, true, { 'a.example': 'row', 'b.example': 'xml' })
  const place = `${SECURED_ROWS}[0].target_hosts`
  const key = `F:7: ${HTTPS}.sender.proxyProfiles:1: profile[0]/targetHosts`
  assert.deepEqual(proxies.said, [`${key} = a.example: is already in ${place}, which wins (name it once)`])
})

test('credentials are Basic, in UTF-8 (RFC 7617 2.1)', async t => {
  const user = 'proxy_username = "Zoë"\nproxy_password = "pä:ss"'
  const proxies = await load(t, row(ROWS, '["*"]', 'p', user) + row(SECURED_ROWS, '["*"]', 'p'))
  const expected = `Basic ${Buffer.from('Zoë:pä:ss', 'utf8').toString('base64')}`
  assert.equal(proxies.proxyFor(false, 'a')!.authorization, expected)
  assert.equal(proxies.proxyFor(true, 'a')!.authorization, '')
})

const user = (name: string, password: string): string =>
  `proxy_username = ${JSON.stringify(name)}\nproxy_password = ${JSON.stringify(password)}`
const XML_KEY = `${HTTP}.sender.proxyProfiles`
/** The line of the file, the key, and then the line within its text. */
const XML_AT = `F:2: ${XML_KEY}`
const EXPECTED_PATTERN =
  'expected host names, IP addresses, or patterns whose only special characters are * and \\. ' +
  '(for example *.example.com)'
const KNOWN = 'targetHosts, proxyHost, proxyPort, proxyUserName, proxyPassword, bypass, bypassHosts'

/** [what, deployment.toml, every diagnostic]. */
const INVALID: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'a colon in the name',
    row(ROWS, '["*"]', 'p', user('a:b', 'secret')),
    [`F:5: ${ROWS}[0].proxy_username = (set): must not hold a colon (RFC 7617 2) (use another one)`],
  ],
  [
    'a line end in the password',
    row(ROWS, '["*"]', 'p', user('a', 'secret\r\nX: y')),
    [`F:6: ${ROWS}[0].proxy_password = (set): must not hold control characters (RFC 7617 2) (use another one)`],
  ],
  [
    'credentials that are too long',
    row(ROWS, '["*"]', 'p', user('a', 's'.repeat(767))),
    [`F:6: ${ROWS}[0].proxy_password = (set): must be at most 768 bytes with the user name (use another one)`],
  ],
  [
    'invalid patterns in rows',
    row(ROWS, '["(a|b)"]', 'p', 'bypass_hosts = ["10.0.0.0/8"]'),
    [
      `F:2: ${ROWS}[0].target_hosts = (a: ${EXPECTED_PATTERN}`,
      `F:2: ${ROWS}[0].target_hosts = b): ${EXPECTED_PATTERN}`,
      `F:5: ${ROWS}[0].bypass_hosts = 10.0.0.0/8: ${EXPECTED_PATTERN}`,
    ],
  ],
  [
    'an invalid pattern among nonProxyHosts',
    `[${HTTPS}]\nsender.http.proxyHost = "p"\nsender.http.proxyPort = 1\nsender.http.nonProxyHosts = "a|http://b"`,
    [`F:4: ${HTTPS}.sender.http.nonProxyHosts = http://b: ${EXPECTED_PATTERN}`],
  ],
  [
    'XML that is not well-formed',
    xml(HTTP, '\n<profile>\n<targetHosts>secret\n</profile>'),
    [`${XML_AT}:2: not well-formed: Opening and ending tag mismatch (correct it)`],
  ],
  [
    'XML with a document type',
    xml(HTTP, '<!DOCTYPE a><profile/>'),
    [`${XML_AT}:1: a document type is not allowed (remove <!DOCTYPE)`],
  ],
  [
    'XML with a declaration on lines of its own',
    xml(HTTP, '\n\n<?xml version="1.0"?>\n<proxy/>'),
    [`${XML_AT}:3: proxy: is not known here (expected <profile>)`],
  ],
  [
    'XML without a profile',
    xml(HTTP, 'secret'),
    [`F:2: ${XML_KEY} = (set): holds no <profile> (add one, or remove the key)`],
  ],
  ['XML of something else', xml(HTTP, '<proxy/>'), [`${XML_AT}:1: proxy: is not known here (expected <profile>)`]],
  [
    'XML profiles with missing, unknown, repeated and invalid elements',
    xml(
      HTTP,
      `<profile><proxyHost>a b</proxyHost>\n<proxyPort>70000</proxyPort><targethosts>*</targethosts></profile>
${profile('*', 'p', '<targetHosts>a</targetHosts>')}`,
    ),
    [
      `${XML_AT}:2: profile[0]/targethosts: is not known (known are ${KNOWN})`,
      `${XML_AT}:1: profile[0]/targetHosts: is missing (every profile must have it)`,
      `${XML_AT}:1: profile[0]/proxyHost = (set): expected a host name or an IP address`,
      `${XML_AT}:2: profile[0]/proxyPort = (set): expected a whole number, 1 to 65535`,
      `${XML_AT}:3: profile[1]/targetHosts: is repeated (write it once, with commas between hosts)`,
    ],
  ],
  [
    'a password without a name',
    xml(HTTP, profile('*', 'p', '<proxyPassword>secret</proxyPassword>')),
    [`${XML_AT}:1: profile[0]/proxyPassword: proxy_password needs a proxy_username: a password alone is never sent`],
  ],
  [
    'a name without a password',
    xml(HTTP, profile('*', 'p', '<proxyUserName>name</proxyUserName>')),
    [`${XML_AT}:1: profile[0]/proxyUserName: proxy_username is sent with an empty password`],
  ],
  [
    'a backend in two profiles',
    row(ROWS, '["a.example"]', 'p') + row(ROWS, '["b.example", "A.example"]', 'q'),
    [`F:7: ${ROWS}[1].target_hosts = a.example: is already in ${ROWS}[0].target_hosts, which wins (name it once)`],
  ],
]

for (const [what, toml, expected] of INVALID) {
  test(`diagnostics: ${what}`, async t => {
    const { said } = await load(t, toml)
    assert.deepEqual(said, expected)
    assert.ok(!said.join().includes('secret'))
  })
}

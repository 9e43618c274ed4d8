import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { CA, CLIENT, OTHER_CA, SERVER, VIRTUAL, WILDCARD } from '../harness/certificates.ts'
import { TRUST_P12 } from './fixtures/stores.ts'
import { TlsHome } from './tls-home.ts'

const LISTENER = { 'listener.ssl_profile.file_path': 'sslprofiles/listener.xml' }
const SENDER = { 'sender.ssl_profile.file_path': 'sslprofiles/sender.xml' }

function keyStore(name: string): string {
  return `<KeyStore><Location>${name}</Location><Type>PEM</Type><Password>x</Password></KeyStore>`
}

function trustStore(name: string): string {
  return `<TrustStore><Location>${name}</Location><Type>PEM</Type></TrustStore>`
}

function profiles(root: string, ...bodies: readonly string[]): string {
  const listed = bodies.map(body => `<profile>${body}</profile>`).join('\n')
  return `<?xml version="1.0"?>\n<parameter name="${root}">\n${listed}\n</parameter>`
}

function homeWith(t: TestContext): TlsHome {
  const home = new TlsHome(t)
  home.write('security/shop.pem', VIRTUAL.key + VIRTUAL.cert)
  home.write('security/wild.pem', WILDCARD.key + WILDCARD.cert)
  home.write('security/client.pem', CLIENT.key + CLIENT.cert)
  home.write('security/ca.pem', CA.cert)
  home.write('security/other.pem', OTHER_CA.cert)
  home.write('security/trust.p12', TRUST_P12)
  return home
}

test('profiles of the listener are virtual hosts, named by serverName or by their certificates', async t => {
  const home = homeWith(t)
  const named = `<serverName> One.Example, *.two.example </serverName>${keyStore('shop.pem')}`
  const verifying = `${keyStore('wild.pem')}${trustStore('ca.pem')}<SSLVerifyClient>require</SSLVerifyClient>`
  home.write('sslprofiles/listener.xml', profiles('SSLProfiles', keyStore('shop.pem'), verifying, named))
  const { hosts, verifyClient } = (await home.open(LISTENER)).plans.server!
  assert.equal(verifyClient, 'none')
  assert.deepEqual(
    hosts.map(host => [host.names, host.identity.cert, host.verifyClient, host.ca]),
    [
      [['shop.example.test'], VIRTUAL.cert, 'none', []],
      [['*.example.test'], WILDCARD.cert, 'require', [CA.cert]],
      [['one.example', '*.two.example'], VIRTUAL.cert, 'none', []],
    ],
  )
})

test('a profile inherits SSLVerifyClient and trust store of the listener (D48)', async t => {
  const home = homeWith(t)
  const open = `${keyStore('wild.pem')}<SSLVerifyClient>none</SSLVerifyClient>`
  const others = `<serverName>other.example</serverName>${keyStore('shop.pem')}${trustStore('other.pem')}`
  home.write('sslprofiles/listener.xml', profiles('SSLProfiles', keyStore('shop.pem'), open, others))
  const listener = {
    ...LISTENER,
    'listener.parameters.SSLVerifyClient': 'require' as const,
    'listener.trust_store.file_name': 'ca.pem',
    'listener.trust_store.type': 'PEM' as const,
  }
  const { hosts } = (await home.open(listener)).plans.server!
  assert.deepEqual(
    hosts.map(({ names, verifyClient, ca }) => [names[0], verifyClient, ca]),
    [
      ['shop.example.test', 'require', [CA.cert]],
      ['*.example.test', 'none', []],
      ['other.example', 'require', [OTHER_CA.cert]],
    ],
  )
})

test('profiles of the sender are plans by server, and inherit the settings that they leave out', async t => {
  const home = homeWith(t)
  const both = `<servers>One.Example:8443, [::1]:443</servers>${trustStore('ca.pem')}${keyStore('client.pem')}`
  const trusting = `<servers>two.example:443</servers>${trustStore('other.pem')}`
  home.write('sslprofiles/sender.xml', profiles('customSSLProfiles', both, trusting))
  const { clients } = (await home.open({ ...SENDER, 'sender.hostname_verifier': 'AllowAll' })).plans
  assert.deepEqual(
    clients.map(({ match, plan }) => [match, plan.ca, plan.identity?.cert ?? null, plan.hostname]),
    [
      ['one.example:8443', [CA.cert], CLIENT.cert, 'none'],
      ['[::1]:443', [CA.cert], CLIENT.cert, 'none'],
      ['two.example:443', [OTHER_CA.cert], null, 'none'],
      ['default', null, null, 'none'],
    ],
  )
})

test('the type of a store in a profile is optional', async t => {
  const home = homeWith(t)
  const location = (name: string): string => `<Location>${name}</Location><Password>storepw</Password>`
  const body = `<servers>*</servers><TrustStore>${location('trust.p12')}</TrustStore>`
  home.write('sslprofiles/sender.xml', profiles('customSSLProfiles', body))
  const { clients } = (await home.open(SENDER)).plans
  assert.equal(clients[0]!.plan.ca!.length, 2)
})

test('a profile of the sender without a key store inherits the key store of the sender', async t => {
  const home = homeWith(t)
  const one = `<servers>one.example:443</servers>${trustStore('ca.pem')}`
  const every = `<servers>two.example:443</servers>${keyStore('shop.pem')}`
  home.write('sslprofiles/sender.xml', profiles('customSSLProfiles', one, every))
  const keys = {
    'sender.key_store.file_name': 'client.pem',
    'sender.key_store.type': 'PEM',
    'sender.trust_store.file_name': 'other.pem',
    'sender.trust_store.type': 'PEM',
  }
  const { clients } = (await home.open({ ...SENDER, ...keys })).plans
  assert.deepEqual(
    clients.map(({ plan }) => [plan.identity!.cert, plan.ca]),
    [
      [CLIENT.cert, [CA.cert]],
      [VIRTUAL.cert, [OTHER_CA.cert]],
      [CLIENT.cert, [OTHER_CA.cert]],
    ],
  )
})

test('a profile for * replaces the default plan, wherever it stands', async t => {
  const home = homeWith(t)
  const every = `<servers>*</servers>${trustStore('ca.pem')}`
  const one = `<servers>one.example:443</servers>${trustStore('other.pem')}`
  home.write('sslprofiles/sender.xml', profiles('customSSLProfiles', every, one))
  const { clients } = (await home.open(SENDER)).plans
  assert.deepEqual(
    clients.map(({ match, plan }) => [match, plan.ca]),
    [
      ['one.example:443', [OTHER_CA.cert]],
      ['default', [CA.cert]],
    ],
  )
})

test('a profile file is found by its documented paths', async t => {
  for (const [given, written] of [
    ['conf/sslprofiles/l.xml', 'repository/conf/sslprofiles/l.xml'],
    ['conf/sslprofiles/l.xml', 'sslprofiles/l.xml'],
    ['repository/conf/l.xml', 'repository/conf/l.xml'],
    ['l.xml', 'l.xml'],
  ] as const) {
    const home = homeWith(t)
    home.write(written, profiles('SSLProfiles', keyStore('shop.pem')))
    const { server } = (await home.open({ 'listener.ssl_profile.file_path': given })).plans
    assert.equal(server!.hosts.length, 1, `${given} at ${written}`)
  }
})

const L = 'sslprofiles/listener.xml'
const KEY = 'transport.passthru_https.listener.ssl_profile.file_path'
const LOCATION = `${L}:4 KeyStore/Location`
const STORE_HINT = `put the file into the folder security of the home, or set ${LOCATION}`
const NAME_HINT = 'add <serverName>, or use a certificate with DNS names'
const BROKEN_LISTENER: readonly (readonly [string, string, string])[] = [
  ['does not exist', '', `${L}: ${KEY}: cannot be read: there is no such file (put the file there, or set ${KEY})`],
  [
    'is not well-formed',
    '<parameter name="SSLProfiles">\n<profile></parameter>',
    `${L}:2: not well-formed: Opening and ending tag mismatch (correct it)`,
  ],
  [
    'has a document type',
    '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>\n<parameter name="SSLProfiles"/>',
    `${L}:2: a document type is not allowed (remove <!DOCTYPE)`,
  ],
  [
    'declares an entity',
    '<parameter name="SSLProfiles">\n<profile>&secret;</profile></parameter>',
    `${L}:2: not well-formed: entity not found (correct it)`,
  ],
  ['has another root', '<profiles/>', `${L}:1: expected the element <parameter> (put all other elements inside it)`],
  [
    'is that of the sender',
    profiles('customSSLProfiles'),
    `${L}:2: ${KEY}: expected <parameter name="SSLProfiles"> (correct the name)`,
  ],
  [
    'has a profile without a key store',
    profiles('SSLProfiles', '<serverName>a.example</serverName>'),
    `${L}:3: KeyStore: is missing (add it)`,
  ],
  [
    'has a key store without a location',
    profiles('SSLProfiles', '\n<KeyStore><Type>JKS</Type></KeyStore>'),
    `${L}:4: KeyStore/Location: is missing (add it)`,
  ],
  [
    'names a missing store',
    profiles('SSLProfiles', '', keyStore('no.pem')).replace('<profile></profile>', ''),
    `security/no.pem: ${LOCATION}: cannot be read: there is no such file (${STORE_HINT})`,
  ],
  [
    'has a wrong mode',
    profiles('SSLProfiles', `${keyStore('shop.pem')}${trustStore('ca.pem')}<SSLVerifyClient>maybe</SSLVerifyClient>`),
    `${L}:3: SSLVerifyClient = maybe: expected one of none, optional, require (leave it out for none)`,
  ],
  [
    'asks for client certificates and has no trust store',
    profiles('SSLProfiles', `${keyStore('shop.pem')}<SSLVerifyClient>optional</SSLVerifyClient>`),
    `${L}:3: TrustStore: clients are asked for certificates, and no trust store is set (set TrustStore)`,
  ],
  [
    'has an invalid name',
    profiles('SSLProfiles', `${keyStore('shop.pem')}\n<serverName>a.*.example</serverName>`),
    `${L}:4: serverName = a.*.example: expected host names or *.domain`,
  ],
  [
    'names no host',
    profiles('SSLProfiles', keyStore('client.pem')),
    `${L}:3: serverName: neither the profile nor its certificate names a host (${NAME_HINT})`,
  ],
]

for (const [name, xml, error] of BROKEN_LISTENER) {
  test(`a profile file of the listener is refused, with its line: it ${name}`, async t => {
    const home = homeWith(t)
    if (xml !== '') home.write(L, xml)
    assert.deepEqual(await home.errors(LISTENER), [error])
  })
}

const BROKEN_SENDER: readonly (readonly [string, string, string])[] = [
  ['names no server', trustStore('ca.pem'), 'sslprofiles/sender.xml:3: servers: is missing (add host:port, or *)'],
  [
    'names a server without its port',
    '<servers>one.example</servers>',
    'sslprofiles/sender.xml:3: servers = one.example: expected host:port, or *',
  ],
  [
    'names an invalid port',
    '<servers>a:1,a:65536</servers>',
    'sslprofiles/sender.xml:3: servers = a:65536: expected host:port, or *',
  ],
]

for (const [name, body, error] of BROKEN_SENDER) {
  test(`a profile file of the sender is refused, with its line: it ${name}`, async t => {
    const home = homeWith(t)
    home.write('sslprofiles/sender.xml', profiles('customSSLProfiles', body))
    assert.deepEqual(await home.errors(SENDER), [error])
  })
}

const WARNED: readonly (readonly [string, string, string, RegExp | null])[] = [
  [
    'an address that the listener does not have',
    '127.0.0.1',
    '<bindAddress>10.0.0.1</bindAddress>',
    /^warn: .*listener\.xml:3: bindAddress = 10\.0\.0\.1: is not the address of the listener and is ignored/,
  ],
  ['the address of the listener', '127.0.0.1', '<bindAddress>127.0.0.1</bindAddress>', null],
  ['every address', '', '<bindAddress>0.0.0.0</bindAddress>', null],
  [
    'an unknown element',
    '',
    '<CertificateRevocationVerifier/>',
    /^warn: .*listener\.xml:3: CertificateRevocationVerifier: is ignored/,
  ],
]

for (const [name, bound, element, line] of WARNED) {
  test(`a profile with ${name} is accepted${line === null ? '' : ' with a warning'}`, async t => {
    const home = homeWith(t)
    home.write(L, profiles('SSLProfiles', `${element}${keyStore('shop.pem')}`))
    home.write('security/own.pem', SERVER.key + SERVER.cert)
    const own = { 'listener.key_store.file_name': 'own.pem', 'listener.key_store.type': 'PEM' }
    await home.open({ ...LISTENER, ...own, 'listener.parameters.bind_address': bound })
    assert.equal(home.logged.length, line === null ? 0 : 1)
    if (line !== null) assert.match(home.logged[0]!, line)
  })
}

/** [verifier, planned check of the host name, number of warnings] */
const VERIFIERS: readonly (readonly [string, string, number])[] = [
  ['', 'strict', 0],
  ['Strict', 'strict', 0],
  ['Default', 'strict', 0],
  ['DefaultAndLocalhost', 'strict', 0],
  ['AllowAll', 'none', 1],
]

for (const [verifier, hostname, warnings] of VERIFIERS) {
  test(`the hostname verifier "${verifier}" is accepted`, async t => {
    const home = new TlsHome(t)
    const { clients } = (await home.open({ 'sender.hostname_verifier': verifier }, { listens: false })).plans
    assert.deepEqual(clients, [
      {
        match: 'default',
        plan: { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers: '', ca: null, identity: null, hostname },
      },
    ])
    assert.equal(home.logged.length, warnings)
  })
}

test('an unknown hostname verifier is an error', async t => {
  const [error] = await new TlsHome(t).errors({ 'sender.hostname_verifier': 'Lax' }, { listens: false })
  assert.match(
    error!,
    /sender\.hostname_verifier = Lax: expected one of Strict, Default, DefaultAndLocalhost, AllowAll/,
  )
})

test('wss backends have their own trust store, whose type is detected', async t => {
  const home = homeWith(t)
  home.write('security/client.pem', CLIENT.key + CLIENT.cert)
  const keys = { 'sender.key_store.file_name': 'client.pem', 'sender.key_store.type': 'PEM' }
  const { wss } = (await home.open(keys, { wss: 'trust.p12' })).plans
  assert.deepEqual([...wss.ca!].sort(), [CA.cert, OTHER_CA.cert].sort())
  assert.equal(wss.identity!.cert, CLIENT.cert)
  const { plans } = await home.open(keys)
  assert.deepEqual(plans.wss, plans.clients.at(-1)!.plan)
})

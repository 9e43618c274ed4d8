import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { CA, CLIENT, OTHER_CA, SERVER, VIRTUAL, WILDCARD } from '../harness/certificates.ts'
import { TRUST_P12 } from './fixtures/stores.ts'
import { Place } from './place.ts'

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

function placeWith(t: TestContext): Place {
  const place = new Place(t)
  place.write('security/shop.pem', VIRTUAL.key + VIRTUAL.cert)
  place.write('security/wild.pem', WILDCARD.key + WILDCARD.cert)
  place.write('security/client.pem', CLIENT.key + CLIENT.cert)
  place.write('security/ca.pem', CA.cert)
  place.write('security/other.pem', OTHER_CA.cert)
  place.write('security/trust.p12', TRUST_P12)
  return place
}

test('profiles of the listener are virtual hosts, by the names of their certificates or by their own', async t => {
  const place = placeWith(t)
  const named = `<serverName> One.Example, *.two.example </serverName>${keyStore('shop.pem')}`
  const verifying = `${keyStore('wild.pem')}${trustStore('ca.pem')}<SSLVerifyClient>require</SSLVerifyClient>`
  place.write('sslprofiles/listener.xml', profiles('SSLProfiles', keyStore('shop.pem'), verifying, named))
  const { hosts, verifyClient } = (await place.open(LISTENER)).plans.server!
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

test('a profile that says nothing of client certificates asks for them as the listener does', async t => {
  const place = placeWith(t)
  const open = `${keyStore('wild.pem')}<SSLVerifyClient>none</SSLVerifyClient>`
  const others = `<serverName>other.example</serverName>${keyStore('shop.pem')}${trustStore('other.pem')}`
  place.write('sslprofiles/listener.xml', profiles('SSLProfiles', keyStore('shop.pem'), open, others))
  const listener = {
    ...LISTENER,
    'listener.parameters.SSLVerifyClient': 'require' as const,
    'listener.trust_store.file_name': 'ca.pem',
    'listener.trust_store.type': 'PEM' as const,
  }
  const { hosts } = (await place.open(listener)).plans.server!
  assert.deepEqual(
    hosts.map(({ names, verifyClient, ca }) => [names[0], verifyClient, ca]),
    [
      ['shop.example.test', 'require', [CA.cert]],
      ['*.example.test', 'none', []],
      ['other.example', 'require', [OTHER_CA.cert]],
    ],
  )
})

test('profiles of the sender are plans by server; what they leave out is as for every backend', async t => {
  const place = placeWith(t)
  const both = `<servers>One.Example:8443, [::1]:443</servers>${trustStore('ca.pem')}${keyStore('client.pem')}`
  const trusting = `<servers>two.example:443</servers>${trustStore('other.pem')}`
  place.write('sslprofiles/sender.xml', profiles('customSSLProfiles', both, trusting))
  const { clients } = (await place.open({ ...SENDER, 'sender.hostname_verifier': 'AllowAll' })).plans
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

test('a store of a profile need not say its type', async t => {
  const place = placeWith(t)
  const location = (name: string): string => `<Location>${name}</Location><Password>storepw</Password>`
  const body = `<servers>*</servers><TrustStore>${location('trust.p12')}</TrustStore>`
  place.write('sslprofiles/sender.xml', profiles('customSSLProfiles', body))
  const { clients } = (await place.open(SENDER)).plans
  assert.equal(clients[0]!.plan.ca!.length, 2)
})

test('a profile of the sender without a key store shows that of every backend', async t => {
  const place = placeWith(t)
  const one = `<servers>one.example:443</servers>${trustStore('ca.pem')}`
  const every = `<servers>two.example:443</servers>${keyStore('shop.pem')}`
  place.write('sslprofiles/sender.xml', profiles('customSSLProfiles', one, every))
  const keys = {
    'sender.key_store.file_name': 'client.pem',
    'sender.key_store.type': 'PEM',
    'sender.trust_store.file_name': 'other.pem',
    'sender.trust_store.type': 'PEM',
  }
  const { clients } = (await place.open({ ...SENDER, ...keys })).plans
  assert.deepEqual(
    clients.map(({ plan }) => [plan.identity!.cert, plan.ca]),
    [
      [CLIENT.cert, [CA.cert]],
      [VIRTUAL.cert, [OTHER_CA.cert]],
      [CLIENT.cert, [OTHER_CA.cert]],
    ],
  )
})

test('a profile for every server takes the place of the default, wherever it stands', async t => {
  const place = placeWith(t)
  const every = `<servers>*</servers>${trustStore('ca.pem')}`
  const one = `<servers>one.example:443</servers>${trustStore('other.pem')}`
  place.write('sslprofiles/sender.xml', profiles('customSSLProfiles', every, one))
  const { clients } = (await place.open(SENDER)).plans
  assert.deepEqual(
    clients.map(({ match, plan }) => [match, plan.ca]),
    [
      ['one.example:443', [OTHER_CA.cert]],
      ['default', [CA.cert]],
    ],
  )
})

test('a profile file is found where documented paths have it', async t => {
  for (const [given, written] of [
    ['conf/sslprofiles/l.xml', 'repository/conf/sslprofiles/l.xml'],
    ['conf/sslprofiles/l.xml', 'sslprofiles/l.xml'],
    ['repository/conf/l.xml', 'repository/conf/l.xml'],
    ['l.xml', 'l.xml'],
  ] as const) {
    const place = placeWith(t)
    place.write(written, profiles('SSLProfiles', keyStore('shop.pem')))
    const { server } = (await place.open({ 'listener.ssl_profile.file_path': given })).plans
    assert.equal(server!.hosts.length, 1, `${given} at ${written}`)
  }
})

const L = 'sslprofiles/listener.xml'
const KEY = 'transport.passthru_https.listener.ssl_profile.file_path'
const LOCATION = `${L}:4 KeyStore/Location`
const FOLDER = 'it is looked for in the folder security of the home folder'
const NAMED = 'add <serverName>, or take a certificate with a subject alternative name'
const BROKEN_LISTENER: readonly (readonly [string, string, string])[] = [
  ['is not there', '', `${L}: ${KEY}: cannot be read: there is no such file (put it there, or set ${KEY})`],
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
    'has an entity of its own',
    '<parameter name="SSLProfiles">\n<profile>&secret;</profile></parameter>',
    `${L}:2: not well-formed: entity not found (correct it)`,
  ],
  ['has another root', '<profiles/>', `${L}:1: expected the element <parameter> (let it hold all others)`],
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
    'has a key store without a place',
    profiles('SSLProfiles', '\n<KeyStore><Type>JKS</Type></KeyStore>'),
    `${L}:4: KeyStore/Location: is missing (add it)`,
  ],
  [
    'names a store that is not there',
    profiles('SSLProfiles', '', keyStore('no.pem')).replace('<profile></profile>', ''),
    `security/no.pem: ${LOCATION}: cannot be read: there is no such file (put it there, or set ${LOCATION}; ${FOLDER})`,
  ],
  [
    'has a wrong mode',
    profiles('SSLProfiles', `${keyStore('shop.pem')}${trustStore('ca.pem')}<SSLVerifyClient>maybe</SSLVerifyClient>`),
    `${L}:3: SSLVerifyClient = maybe: expected one of none, optional, require (leave it out for none)`,
  ],
  [
    'asks for certificates and trusts none',
    profiles('SSLProfiles', `${keyStore('shop.pem')}<SSLVerifyClient>optional</SSLVerifyClient>`),
    `${L}:3: TrustStore: clients are asked for certificates, and none are trusted (set TrustStore)`,
  ],
  [
    'has a name that is none',
    profiles('SSLProfiles', `${keyStore('shop.pem')}\n<serverName>a.*.example</serverName>`),
    `${L}:4: serverName = a.*.example: expected host names or *.domain`,
  ],
  [
    'is for no name at all',
    profiles('SSLProfiles', keyStore('client.pem')),
    `${L}:3: serverName: nothing says for which names the profile is (${NAMED})`,
  ],
]

for (const [name, xml, fault] of BROKEN_LISTENER) {
  test(`a profile file of the listener is refused with its line: it ${name}`, async t => {
    const place = placeWith(t)
    if (xml !== '') place.write(L, xml)
    assert.deepEqual(await place.faults(LISTENER), [fault])
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
    'names a port that is none',
    '<servers>a:1,a:65536</servers>',
    'sslprofiles/sender.xml:3: servers = a:65536: expected host:port, or *',
  ],
]

for (const [name, body, fault] of BROKEN_SENDER) {
  test(`a profile file of the sender is refused with its line: it ${name}`, async t => {
    const place = placeWith(t)
    place.write('sslprofiles/sender.xml', profiles('customSSLProfiles', body))
    assert.deepEqual(await place.faults(SENDER), [fault])
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
    'an element that is not acted on',
    '',
    '<CertificateRevocationVerifier/>',
    /^warn: .*listener\.xml:3: CertificateRevocationVerifier: is not acted on/,
  ],
]

for (const [name, bound, element, line] of WARNED) {
  test(`a profile with ${name} is ${line === null ? 'taken in silence' : 'warned of'}`, async t => {
    const place = placeWith(t)
    place.write(L, profiles('SSLProfiles', `${element}${keyStore('shop.pem')}`))
    place.write('security/own.pem', SERVER.key + SERVER.cert)
    const own = { 'listener.key_store.file_name': 'own.pem', 'listener.key_store.type': 'PEM' }
    await place.open({ ...LISTENER, ...own, 'listener.parameters.bind_address': bound })
    assert.equal(place.said.length, line === null ? 0 : 1)
    if (line !== null) assert.match(place.said[0]!, line)
  })
}

/** Verifier, what it comes to, and how often is warned. */
const VERIFIERS: readonly (readonly [string, string, number])[] = [
  ['', 'strict', 0],
  ['Strict', 'strict', 0],
  ['Default', 'strict', 0],
  ['DefaultAndLocalhost', 'strict', 0],
  ['AllowAll', 'none', 1],
]

for (const [verifier, hostname, warnings] of VERIFIERS) {
  test(`the hostname verifier "${verifier}" is taken`, async t => {
    const place = new Place(t)
    const { clients } = (await place.open({ 'sender.hostname_verifier': verifier }, { listens: false })).plans
    assert.deepEqual(clients, [
      {
        match: 'default',
        plan: { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers: '', ca: null, identity: null, hostname },
      },
    ])
    assert.equal(place.said.length, warnings)
  })
}

test('an unknown hostname verifier is a fault', async t => {
  const [fault] = await new Place(t).faults({ 'sender.hostname_verifier': 'Lax' }, { listens: false })
  assert.match(
    fault!,
    /sender\.hostname_verifier = Lax: expected one of Strict, Default, DefaultAndLocalhost, AllowAll/,
  )
})

test('backends on wss have a trust store of their own, whose type its first bytes say', async t => {
  const place = placeWith(t)
  place.write('security/client.pem', CLIENT.key + CLIENT.cert)
  const keys = { 'sender.key_store.file_name': 'client.pem', 'sender.key_store.type': 'PEM' }
  const { wss } = (await place.open(keys, { wss: 'trust.p12' })).plans
  assert.deepEqual([...wss.ca!].sort(), [CA.cert, OTHER_CA.cert].sort())
  assert.equal(wss.identity!.cert, CLIENT.cert)
  const { plans } = await place.open(keys)
  assert.deepEqual(plans.wss, plans.clients.at(-1)!.plan)
})

/** Issue of server-side request forgery: where the addresses that tenants set may lead. */
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { suite, test } from 'node:test'
import { AddressGuard, AddressRefused, type ResolveName } from '../../src/delivery/address-guard.ts'

const REFUSED: Readonly<Record<string, readonly string[]>> = {
  'loopback (RFC 1122 3.2.1.3, RFC 4291 2.5.3)': ['127.0.0.1', '127.255.255.254', '::1'],
  'unspecified and this network (RFC 1122 3.2.1.3)': ['0.0.0.0', '0.1.2.3', '::'],
  'private (RFC 1918)': ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1'],
  'link-local (RFC 3927, RFC 4291 2.5.6)': ['169.254.169.254', 'fe80::1', 'fe80::1%eth0', 'febf::1'],
  'unique local and site local (RFC 4193, RFC 3879)': ['fc00::1', 'fd00:ec2::254', 'fec0::1'],
  'shared by carriers (RFC 6598)': ['100.64.0.1', '100.100.100.200', '100.127.255.255'],
  'multicast and broadcast (RFC 5771, RFC 4291 2.7)': ['224.0.0.1', '239.255.255.255', '255.255.255.255', 'ff02::1'],
  'reserved, benchmarks, documentation (RFC 6890)': [
    '240.0.0.1',
    '198.18.0.1',
    '192.0.2.1',
    '2001:db8::1',
    '192.0.0.8',
  ],
  'the metadata service of a cloud with a public address': ['168.63.129.16'],
  'IPv4-mapped (RFC 4291 2.5.5.2)': [
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:10.0.0.1',
    '0:0:0:0:0:ffff:a9fe:a9fe',
  ],
  'IPv4-compatible (RFC 4291 2.5.5.1)': ['::127.0.0.1', '::10.0.0.1', '::8.8.8.8'],
  'NAT64 (RFC 6052, RFC 8215)': ['64:ff9b::127.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b:1::8.8.8.8'],
  '6to4 (RFC 3056)': ['2002:7f00:1::', '2002:c0a8:1::1', '2002:a9fe:a9fe::5'],
  'Teredo, ORCHID (RFC 4380, RFC 7343)': ['2001:0:4136:e378:8000:63bf:3fff:fdd2', '2001:20::1'],
  'discard, SRv6, not assigned': ['100::1', '5f00::1', '4000::1', '3fff::1'],
}

const REACHED = [
  ...['1.1.1.1', '8.8.8.8', '100.63.255.255', '100.128.0.0', '172.15.255.255', '172.32.0.0', '192.167.255.255'],
  ...['2606:4700::1111', '2a00:1450:4001:80b::200e', '2400:cb00::1', '2001:4860:4860::8888'],
  ...['::ffff:8.8.8.8', '64:ff9b::8.8.8.8', '2002:808:808::1'],
]

/** As the parser of URLs normalises them, or as the system's resolver reads them. */
const SPELLINGS = ['127.1', '2130706433', '0x7f.1', '0177.0.0.1', '127.0.0.1.', '①②⑦.0.0.1', '[::ffff:127.0.0.1]']

const guard = new AddressGuard([])
const named = (addresses: readonly string[]): ResolveName => {
  return async () => addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 }))
}

suite('addresses that senders may not reach', () => {
  for (const [kind, addresses] of Object.entries(REFUSED)) {
    test(kind, async () => {
      for (const address of addresses) {
        await assert.rejects(guard.resolve(address), AddressRefused, address)
        await assert.rejects(guard.resolve(`[${address}]`), AddressRefused, address)
        const behindName = new AddressGuard([], named([address.split('%')[0]!]))
        await assert.rejects(behindName.resolve('provider.test'), AddressRefused, address)
      }
    })
  }

  test('the other addresses are reached, also those beside the borders of networks', async () => {
    for (const address of REACHED) assert.equal((await guard.resolve(address))[0]!.address, address)
  })

  test('odd spellings of loopback in URLs are refused', async () => {
    for (const spelling of SPELLINGS) {
      const { hostname } = new URL(`http://${spelling}/`)
      await assert.rejects(guard.resolve(hostname), AddressRefused, spelling)
    }
  })

  test('odd spellings of loopback as the name of a mail server are refused', async () => {
    for (const spelling of ['127.1', '2130706433', '0x7f.1', 'localhost', 'LOCALHOST.']) {
      await assert.rejects(guard.resolve(spelling), AddressRefused, spelling)
    }
  })

  test('one private address among the addresses of a name refuses the name', async () => {
    const mixed = new AddressGuard([], named(['8.8.8.8', '2606:4700::1111', '10.0.0.1']))
    await assert.rejects(mixed.resolve('provider.test'), AddressRefused)
  })

  test('the message tells the host, and not what it resolves to', async () => {
    const inner = new AddressGuard([], named(['10.1.2.3']))
    await assert.rejects(inner.resolve('hr.corp.test'), ({ message }: Error) => {
      assert.match(message, /hr\.corp\.test/)
      return !message.includes('10.1.2.3')
    })
  })
})

suite('the allow-list', () => {
  test('a network is allowed for addresses, names, mapped addresses and NAT64', async () => {
    const open = new AddressGuard(['10.1.0.0/16', 'fd00::/8', '192.168.1.1'], named(['10.1.2.3']))
    const hosts = [
      '10.1.2.3',
      '::ffff:10.1.2.3',
      '64:ff9b::10.1.2.3',
      '2002:a01:203::',
      'fd12::1',
      '192.168.1.1',
      'a.test',
    ]
    for (const host of hosts) await open.resolve(host)
    for (const host of ['10.2.0.1', '192.168.1.2', '127.0.0.1', 'fc00::1']) {
      await assert.rejects(open.resolve(host), AddressRefused, host)
    }
  })

  test('a name is allowed whatever it resolves to, in any case, with a dot at its end; no other name', async () => {
    const open = new AddressGuard(['Mail.Corp.test'], named(['10.1.2.3']))
    for (const host of ['mail.corp.test', 'MAIL.corp.TEST.']) await open.resolve(host)
    for (const host of ['a.mail.corp.test', 'corp.test', '10.1.2.3']) {
      await assert.rejects(open.resolve(host), AddressRefused, host)
    }
  })
})

suite('connections', () => {
  test('DNS rebinding: a name is resolved once, the socket goes to the checked address', async t => {
    const server = createServer(socket => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1')
    t.after(() => server.close())
    await new Promise(resolve => server.once('listening', resolve))
    const { port } = server.address() as { port: number }
    const answers = [['127.0.0.1'], ['127.0.0.2']]
    let asked = 0
    const once = new AddressGuard(['127.0.0.1'], name => named(answers[asked++]!)(name))
    const socket = await once.connect('rebinding.test', port, 5000)
    assert.equal(socket.remoteAddress, '127.0.0.1')
    assert.equal(asked, 1)
    socket.destroy()
    await assert.rejects(once.connect('rebinding.test', port, 5000), AddressRefused)
  })

  test('a refused address gets no connection', async t => {
    let connections = 0
    const server = createServer(() => connections++).listen(0, '127.0.0.1')
    t.after(() => server.close())
    await new Promise(resolve => server.once('listening', resolve))
    const { port } = server.address() as { port: number }
    for (const host of ['127.0.0.1', '127.1', 'localhost', '[::ffff:127.0.0.1]']) {
      await assert.rejects(guard.connect(host, port, 5000), AddressRefused, host)
    }
    assert.equal(connections, 0)
  })

  test('a resolver that does not answer ends with the time-out, and is asked once for all callers', async () => {
    let asked = 0
    const deaf = new AddressGuard([], () => {
      asked++
      return new Promise(() => {})
    })
    const attempts = [1, 2, 3].map(() => deaf.connect('provider.test', 80, 20))
    for (const attempt of attempts) await assert.rejects(attempt, /no connection to provider\.test:80 within 20 ms/)
    assert.equal(asked, 1)
  })
})

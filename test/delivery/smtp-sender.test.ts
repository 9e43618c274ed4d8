/** Mail to real servers: what arrives, and what becomes of a message whatever the server does. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { after, beforeEach, suite, test } from 'node:test'
import { AddressGuard } from '../../src/delivery/address-guard.ts'
import type { AttemptResult } from '../../src/delivery/attempt.ts'
import { type MailMessage, type MailServer as ServerSettings, SmtpSender } from '../../src/delivery/smtp-sender.ts'
import { CA, EXPIRED, VIRTUAL } from '../harness/certificates.ts'
import { bodyOf, fieldOf, MailServer } from '../harness/mail-server.ts'

const NEVER = new AbortController().signal
const guard = new AddressGuard(['127.0.0.0/8'])
const plain = await MailServer.listen()
const secured = await MailServer.listen({ secure: true })
const sender = new SmtpSender({ guard, ca: [CA.cert] })

beforeEach(() => {
  for (const server of [plain, secured]) {
    server.mails.length = 0
    server.logins.length = 0
    server.onMail = () => {}
    server.refusal = () => ''
  }
})
after(async () => {
  sender.close()
  await Promise.all([plain.close(), secured.close()])
})

const ANONYMOUS: Omit<ServerSettings, 'port'> = {
  host: '127.0.0.1',
  user: '',
  password: '',
  startTls: 'off',
  implicitTls: false,
  isAuthenticated: false,
}
const ACCOUNT = { user: 'user', password: 'password', isAuthenticated: true, startTls: 'required' } as const

function message(server: Partial<ServerSettings> = {}, given: Partial<MailMessage> = {}): MailMessage {
  return {
    server: { ...ANONYMOUS, port: plain.port, ...server },
    from: 'Sluice <sluice@example.com>',
    replyTo: '',
    to: 'ann@example.com',
    subject: 'Hello',
    type: 'text',
    body: 'Text',
    signature: '',
    messageId: '<d-1@sluice.example.com>',
    ...given,
  }
}

const send = (server: Partial<ServerSettings> = {}, given: Partial<MailMessage> = {}): Promise<AttemptResult> =>
  sender.send(message(server, given), NEVER)

function assertRetry(result: AttemptResult, cause: RegExp): void {
  assert.equal(result.kind, 'retry', JSON.stringify(result))
  assert.match(result.kind === 'retry' ? result.cause : '', cause)
}

function assertFailed(result: AttemptResult, cause: RegExp): void {
  assert.equal(result.kind, 'failed', JSON.stringify(result))
  assert.match(result.kind === 'failed' ? result.cause : '', cause)
}

suite('what arrives', () => {
  test('envelope, fields and text', async () => {
    const result = await send({}, { replyTo: 'Help <help@example.com>' })
    assert.equal(result.kind, 'delivered')
    assert.match(result.kind === 'delivered' ? result.detail : '', /^250 .*queued/)
    const [mail] = plain.mails
    assert.deepEqual([mail!.from, mail!.to], ['sluice@example.com', ['ann@example.com']])
    const FIELDS = {
      From: 'Sluice <sluice@example.com>',
      To: 'ann@example.com',
      'Reply-To': 'Help <help@example.com>',
      Subject: 'Hello',
      'Message-ID': '<d-1@sluice.example.com>',
      'Auto-Submitted': 'auto-generated',
      'Content-Type': 'text/plain; charset=utf-8',
      'X-Mailer': '',
    }
    for (const [name, value] of Object.entries(FIELDS)) assert.equal(fieldOf(mail!, name), value, name)
    assert.equal(bodyOf(mail!), 'Text\r\n')
  })

  const TEXTS: Readonly<Record<string, string>> = {
    'beyond ASCII': 'Grüße — 你好 👋 \u0645\u0631\u062d\u0628\u0627',
    'lines longer than 998 bytes': `${'a'.repeat(3000)} end`,
    'lines that begin with dots, and the end of DATA': 'one\n.\n..two\n.\r\nMAIL FROM:<evil@example.com>\r\n.\r\nQUIT',
    'bare CR and bare LF around a dot': 'one\r.\rtwo\n.\nRCPT TO:<evil@example.com>\r.\r\nthree',
    'lines that begin with From': 'From here\n>From there',
    'equals signs and trailing spaces': 'a=b =3D  \nc\t\nd ',
    'control characters': 'a\u0000b\u0007c\u001bd',
  }
  for (const [title, body] of Object.entries(TEXTS)) {
    test(`text: ${title}`, async () => {
      assert.equal((await send({}, { body })).kind, 'delivered')
      assert.equal(plain.mails.length, 1)
      const lines = (text: string): readonly string[] => text.replace(/\r\n?/g, '\n').trimEnd().split('\n')
      assert.deepEqual(lines(bodyOf(plain.mails[0]!)), lines(body))
      assert.ok(plain.mails[0]!.raw.split('\r\n').every(line => line.length <= 998 && !/[\r\n]/.test(line)))
    })
  }

  test('HTML, with the signature as text', async () => {
    await send({}, { type: 'html', body: '<p>Grüße</p>', signature: 'A & <b>\nline' })
    assert.equal(fieldOf(plain.mails[0]!, 'Content-Type'), 'text/html; charset=utf-8')
    assert.equal(
      bodyOf(plain.mails[0]!).replace(/\r\n/g, '\n').trimEnd(),
      '<p>Grüße</p>\n<p>-- <br>\nA &amp; &lt;b&gt;<br>\nline</p>',
    )
  })

  test('a signature below text (RFC 3676 4.3)', async () => {
    await send({}, { signature: 'The team' })
    assert.equal(bodyOf(plain.mails[0]!).replace(/\r\n/g, '\n').trimEnd(), 'Text\n\n-- \nThe team')
  })

  test('subject and names beyond ASCII', async () => {
    const subject = `Prüfung 你好 👋 ${'ü'.repeat(200)} =?UTF-8?Q?raw?=`
    const from = '"Jörg, Müller" <j@example.com>'
    await send({}, { subject, from, to: 'Ann 👋 <ann@bücher.example>' })
    const [mail] = plain.mails
    assert.equal(fieldOf(mail!, 'Subject'), subject)
    assert.match(fieldOf(mail!, 'From'), /^"?Jörg, Müller"? <j@example\.com>$/)
    assert.deepEqual(mail!.to, ['ann@bücher.example'])
  })
})

suite('header injection', () => {
  const BREAKS = ['\r\n', '\n', '\r', '\u0000', '\u0085', '\u2028']

  test('no character of a subject begins another field', async () => {
    for (const line of BREAKS) {
      await send({}, { subject: `Hi${line}Bcc: evil@example.com${line}${line}<script>` })
      const mail = plain.mails.pop()!
      assert.equal(fieldOf(mail, 'Subject'), 'Hi Bcc: evil@example.com <script>', JSON.stringify(line))
      assert.equal(fieldOf(mail, 'Bcc'), '')
      assert.deepEqual(mail.to, ['ann@example.com'])
    }
  })

  const ADDRESSES = [
    ...BREAKS.flatMap(line => [`ann@example.com${line}Bcc: e@example.com`, `A${line}Bcc: e@x.y <ann@example.com>`]),
    ...['ann@example.com, evil@example.com', 'ann@example.com;evil@example.com', 'A <a@b.example> <c@d.example>'],
    ...['ann', '@example.com', 'ann@', 'ann@@example.com', 'a b@example.com', '"a b"@example.com', ''],
    ...[
      'ann@127.0.0.1',
      'ann@[127.0.0.1]',
      'ann@127.1',
      'group: ann@example.com;',
      'ann@example.com>',
      '<ann@example.com',
    ],
  ]
  for (const field of ['from', 'to', 'replyTo'] as const) {
    test(`what is not one mailbox fails without a connection: ${field}`, async () => {
      const before = plain.connections
      for (const address of ADDRESSES.filter(text => field !== 'replyTo' || text !== '')) {
        assertFailed(await send({}, { [field]: address }), new RegExp(`^not one mailbox: ${field}$`))
      }
      assert.equal(plain.connections, before)
    })
  }

  test('a Message-ID with other characters fails', async () => {
    for (const messageId of ['', 'd-1@example.com', '<d 1@example.com>', '<d-1@example.com>\r\nBcc: e@example.com']) {
      assertFailed(await send({}, { messageId }), /Message-ID/)
    }
  })
})

suite('TLS and logins', () => {
  test('STARTTLS off, offered, required; TLS from the first byte', async () => {
    const WAYS: readonly (readonly [Partial<ServerSettings>, boolean])[] = [
      [{ startTls: 'off' }, false],
      [{ startTls: 'offered' }, true],
      [{ startTls: 'required' }, true],
      [{ startTls: 'required', host: 'localhost' }, true],
    ]
    for (const [server, isSecured] of WAYS) {
      assert.equal((await send(server)).kind, 'delivered', JSON.stringify(server))
      assert.equal(plain.mails.pop()!.isSecured, isSecured, JSON.stringify(server))
    }
    for (const host of ['localhost', '127.0.0.1']) {
      assert.equal((await send({ implicitTls: true, host, port: secured.port })).kind, 'delivered')
      assert.equal(secured.mails.pop()!.isSecured, true)
    }
  })

  test('without STARTTLS: offered goes on in plain text without a login, required and logins wait', async t => {
    const bare = await MailServer.listen({
      hideSTARTTLS: true,
      disabledCommands: ['STARTTLS'],
      allowInsecureAuth: true,
    })
    t.after(() => bare.close())
    assert.equal((await send({ startTls: 'offered', port: bare.port })).kind, 'delivered')
    assertRetry(await send({ startTls: 'required', port: bare.port }), /STARTTLS/)
    assertRetry(await send({ ...ACCOUNT, startTls: 'offered', port: bare.port }), /STARTTLS/)
    assert.deepEqual([bare.mails.length, bare.logins], [1, []])
  })

  test('a certificate of an unknown authority, expired or of another name: nothing is sent', async t => {
    const distrustful = new SmtpSender({ guard })
    const others = await Promise.all([EXPIRED, VIRTUAL].map(({ cert, key }) => MailServer.listen({ cert, key })))
    t.after(async () => {
      distrustful.close()
      await Promise.all(others.map(server => server.close()))
    })
    const server = { ...ACCOUNT, host: 'localhost' }
    assertRetry(await distrustful.send(message(server), NEVER), /certificate/)
    for (const { port } of others) assertRetry(await send({ ...server, port }), /certificate/)
    assert.deepEqual(
      [plain, ...others].map(({ mails, logins }) => mails.length + logins.length),
      [0, 0, 0],
    )
  })

  test('a login over STARTTLS, over TLS, and in plain text where STARTTLS is off', async t => {
    const open = await MailServer.listen({ authOptional: false, allowInsecureAuth: true })
    t.after(() => open.close())
    assert.equal((await send(ACCOUNT)).kind, 'delivered')
    assert.equal((await send({ ...ACCOUNT, implicitTls: true, port: secured.port })).kind, 'delivered')
    assert.equal((await send({ ...ACCOUNT, startTls: 'off', port: open.port })).kind, 'delivered')
    for (const server of [plain, secured, open]) {
      assert.deepEqual([server.logins, server.mails[0]!.user], [['user:password'], 'user'])
    }
  })

  test('a refused login is tried again after a pause, in which no message tries it; other accounts go on', async t => {
    const careful = new SmtpSender({ guard, ca: [CA.cert], limits: { loginPauseMs: 60_000 } })
    t.after(() => careful.close())
    const wrong = message({ ...ACCOUNT, password: 's3cret' })
    const first = await careful.send(wrong, NEVER)
    assertRetry(first, /refuses the login \(535\)/)
    assert.equal(first.kind === 'retry' && first.afterMs, 60_000)
    for (let turn = 0; turn < 5; turn++) {
      const next = await careful.send(wrong, NEVER)
      assertRetry(next, /is asked again later/)
      assert.ok(next.kind === 'retry' && next.afterMs! <= 60_000)
      assert.doesNotMatch(JSON.stringify(next), /s3cret/)
    }
    assert.deepEqual(plain.logins, ['user:s3cret'])
    assert.equal((await careful.send(message(ACCOUNT), NEVER)).kind, 'delivered')
  })

  test('a server that asks for a login, and gets none: tried again', async t => {
    const strict = await MailServer.listen({ authOptional: false })
    t.after(() => strict.close())
    assertRetry(await send({ port: strict.port }), /login \(530\)/)
  })
})

suite('replies and failures', () => {
  test('greylisting (RFC 6647): tried again, and taken later', async () => {
    let attempts = 0
    plain.refusal = () => (attempts++ === 0 ? '450 4.2.0 Greylisted, try again later' : '')
    assertRetry(await send(), /450 4\.2\.0 Greylisted/)
    assert.equal((await send()).kind, 'delivered')
    assert.equal(plain.mails.length, 1)
  })

  test('a reply of 5xx to the recipient or to the message: fails, and its connection goes on', async () => {
    plain.refusal = () => '550 5.1.1 no such user'
    assertFailed(await send(), /550 5\.1\.1 no such user/)
    plain.refusal = () => ''
    plain.onMail = () => Promise.reject(Object.assign(new Error('5.7.1 spam'), { responseCode: 554 }))
    assertFailed(await send(), /554 5\.7\.1 spam/)
    plain.onMail = () => {}
    assert.equal((await send()).kind, 'delivered')
  })

  test('no result names the recipient, whatever the case in which the server repeats the address', async () => {
    plain.refusal = () => '550 5.1.1 <Ann@Example.com>: no such user ann@example.com'
    assertFailed(await send(), /550 5\.1\.1 <\(recipient\)>: no such user \(recipient\)/)
    plain.refusal = () => ''
  })

  test('421 at the greeting, and a reply of 4xx to the message: tried again', async t => {
    const busy = Object.assign(new Error('4.3.2 full'), { responseCode: 421 })
    const full = await MailServer.listen({ onConnect: (_, done) => done(busy) })
    t.after(() => full.close())
    assertRetry(await send({ port: full.port }), /421 4\.3\.2 full/)
    plain.onMail = () => Promise.reject(Object.assign(new Error('4.3.1 disk full'), { responseCode: 452 }))
    assertRetry(await send(), /452 4\.3\.1 disk full/)
  })

  test('a connection that is lost after DATA: tried again, and both mails have one Message-ID', async () => {
    let attempts = 0
    plain.onMail = (_, connection) => {
      if (attempts++ === 0) connection.destroy()
    }
    assertRetry(await send(), /./)
    assert.equal((await send()).kind, 'delivered')
    const mails = await plain.received(2)
    assert.deepEqual(
      mails.map(mail => fieldOf(mail, 'Message-ID')),
      Array(2).fill('<d-1@sluice.example.com>'),
    )
  })

  test('a server that answers slowly, trickles its greeting or says nothing: tried again', async t => {
    const impatient = new SmtpSender({
      guard,
      limits: { connectMs: 200, greetingMs: 200, silenceMs: 200, attemptMs: 600 },
    })
    const peers = await Promise.all(
      ['', '220-'].map(async line => {
        const server = createServer(socket => {
          const timer = setInterval(() => socket.write(line), 20)
          socket.on('error', () => {}).on('close', () => clearInterval(timer))
        })
        server.listen(0, '127.0.0.1')
        await once(server, 'listening')
        return server
      }),
    )
    t.after(() => {
      impatient.close()
      for (const peer of peers) peer.close()
    })
    for (const peer of peers) {
      const { port } = peer.address() as { port: number }
      assertRetry(await impatient.send(message({ port }), NEVER), /Greeting never received|within 600 ms|imeout/)
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    plain.onMail = () => promise
    assertRetry(await impatient.send(message(), NEVER), /imeout|within 600 ms/)
    resolve()
    await plain.received(1)
  })

  test('no listener, and a name without an address: tried again', async () => {
    const gone = await MailServer.listen()
    const { port } = gone
    await gone.close()
    assertRetry(await send({ port }), /ECONNREFUSED/)
    assertRetry(await send({ host: 'does-not-exist.invalid' }), /ENOTFOUND|EAI_AGAIN/)
  })

  test('an aborted attempt ends at once, and is tried again', async () => {
    const stop = new AbortController()
    const { promise, resolve } = Promise.withResolvers<void>()
    plain.onMail = () => {
      stop.abort()
      return promise
    }
    const interrupted = { kind: 'retry', cause: 'the attempt was interrupted', afterMs: null }
    assert.deepEqual(await sender.send(message(), stop.signal), interrupted)
    resolve()
    assert.deepEqual(await sender.send(message(), stop.signal), interrupted)
  })

  test('a server that tenants may not reach: fails without a connection', async t => {
    const closed = new SmtpSender({ guard: new AddressGuard([]) })
    t.after(() => closed.close())
    const before = plain.connections
    for (const host of ['127.0.0.1', 'localhost', '127.1', '0x7f.1', '::ffff:127.0.0.1']) {
      assertFailed(await closed.send(message({ host }), NEVER), /senders may not reach/)
    }
    assert.equal(plain.connections, before)
  })
})

suite('connections', () => {
  test('one connection serves messages in turn, and each account has its own', async () => {
    await send()
    const before = plain.connections
    for (let turn = 0; turn < 5; turn++) assert.equal((await send()).kind, 'delivered')
    assert.equal(plain.connections, before)
    await send({ ...ACCOUNT, startTls: 'offered' })
    assert.equal(plain.connections, before + 1)
  })

  test('the connections to one server are limited', async t => {
    const limited = new SmtpSender({ guard, connectionsMax: 2 })
    t.after(() => limited.close())
    const before = plain.connections
    const results = await Promise.all(Array.from({ length: 20 }, () => limited.send(message(), NEVER)))
    assert.ok(results.every(({ kind }) => kind === 'delivered'))
    assert.equal(plain.mails.length, 20)
    assert.equal(plain.connections - before, 2)
  })

  test('an idle connection is closed', async t => {
    const brief = new SmtpSender({ guard, limits: { idleMs: 10 } })
    const lone = await MailServer.listen()
    t.after(async () => {
      brief.close()
      await lone.close()
    })
    const { promise: isClosed, resolve } = Promise.withResolvers<void>()
    lone.onMail = (_, connection) => void connection.once('close', () => resolve())
    await brief.send(message({ port: lone.port }), NEVER)
    await isClosed
  })
})

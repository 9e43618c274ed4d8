/**
 * What `dispatchSeq` makes of requests for WebSocket and `outDispatchSeq` of the 101 of a backend: each handshake goes
 * on as it is, is answered by the sequence, or is refused; and nothing is left of those that come to no tunnel.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { takeAnswer } from '../harness/answers.ts'
import { OPEN_CORS } from '../harness/chained.ts'
import { agree, json, leave, SIDES, type Stage, shake, startStage, status } from '../harness/handshakes.ts'
import { connectPeer } from '../harness/peers.ts'
import { agreeing, asking, takeSwitch } from '../harness/tunnels.ts'

const PLAIN = 'GET /echo/x HTTP/1.1\r\nHost: a\r\n\r\n'
const CONTENT = { 'content-type': ['application/json; charset=UTF-8'] }
const FORBIDDEN =
  '{"fault":{"code":900908,"type":"Status report","message":"Resource forbidden","description":"The WebSocket connection is not allowed"}}'

// ---- what goes on --------------------------------------------------------------------------------------------------

const PASSING: readonly (readonly [name: string, content: string])[] = [
  ['only sends', '<send/>'],
  ['sends last', '<property name="a" value="b"/><filter xpath="true()"><then><send/></then></filter><drop/>'],
  ['sets fields and a payload, and sends', `<property name="X-A" value="b" scope="transport"/>${json('{}')}<send/>`],
  ['sends in a sequence that it calls', '<sequence key="sends"/>'],
]

/** Head at the backend and head at the client, without what differs each time. */
async function heads(stage: Stage): Promise<readonly string[]> {
  const client = await connectPeer(stage.gateway.port)
  client.send(asking('websocket', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'X-A: c', 'activityid: same'))
  const peer = await stage.backend.next()
  await peer.untilText('\r\n\r\n')
  const asked = peer.take()
  peer.send(`${agreeing('websocket', 'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=', 'X-A: d')}behind it`)
  const answered = await takeSwitch(client)
  await client.untilText('behind it')
  client.send('there')
  await peer.untilText('there')
  leave(stage, client)
  return [asked.replaceAll(String(stage.backend.port), 'PORT'), answered]
}

for (const [name, content] of PASSING) {
  test(`RFC 6455 4: both heads pass through a sequence that ${name} as they pass without`, async t => {
    const plain = await heads(await startStage(t, {}))
    const stage = await startStage(t, { dispatchSeq: content, outDispatchSeq: content, sends: '<send/>' })
    assert.deepEqual(await heads(stage), plain)
    assert.match(plain[0]!, /\r\nX-A: c\r\n/)
    assert.match(plain[1]!, /\r\nX-A: d\r\n/)
    assert.deepEqual(
      stage.gateway.reports.filter(({ level }) => level !== 'debug' && level !== 'warn'),
      [],
    )
  })
}

const NO_SOCKETS: readonly (readonly [name: string, request: string, response: string])[] = [
  ['a plain request', PLAIN, 'HTTP/1.1 204 No Content\r\n\r\n'],
  ['another protocol', asking('other/1, xwebsocket, websocket-x'), agreeing('other/1')],
  ['a request that a backend refuses to switch for', asking(), 'HTTP/1.1 204 No Content\r\n\r\n'],
  [
    'an Upgrade that Connection does not name',
    asking().replace('Connection: Upgrade\r\n', ''),
    'HTTP/1.1 204 N\r\n\r\n',
  ],
]

for (const [name, request, response] of NO_SOCKETS) {
  test(`what is no WebSocket goes past them: ${name}`, async t => {
    const isSocket = request === asking()
    const stage = await startStage(t, { outDispatchSeq: '<drop/>', ...(isSocket ? {} : { dispatchSeq: '<drop/>' }) })
    const client = await connectPeer(stage.gateway.port)
    client.send(request)
    const peer = await stage.backend.next()
    await peer.untilText('\r\n\r\n')
    peer.send(response)
    await client.untilText(response.startsWith('HTTP/1.1 101') ? ' 101 ' : ' 204 ')
    leave(stage, client)
  })
}

// ---- what is refused -----------------------------------------------------------------------------------------------

const REFUSING: readonly (readonly [name: string, content: string])[] = [
  ['drops', '<drop/>'],
  ['comes to its end', '<log/>'],
  ['is empty', ''],
  ['drops what it has worded', `${json('{}')}${status(200)}<property name="RESPONSE" value="true"/><drop/>`],
  ['drops in a sequence that it calls', '<sequence key="drops"/><send/>'],
]

for (const side of SIDES) {
  for (const protocols of ['websocket', 'WebSocket', 'websocket/13', 'other, websocket']) {
    test(`RFC 9110 7.8: ${side} is asked where ${protocols} is`, async t => {
      const stage = await startStage(t, { [side]: '<drop/>' })
      const client = await connectPeer(stage.gateway.port)
      client.send(asking(protocols))
      if (side === 'outDispatchSeq') {
        const peer = await stage.backend.next()
        await peer.untilText('\r\n\r\n')
        peer.send(agreeing(protocols.replace(/, .*/, '')))
      }
      assert.equal((await takeAnswer(client)).status, 403)
      leave(stage, client)
    })
  }

  for (const [name, content] of REFUSING) {
    test(`a ${side} that ${name} refuses: 403, and the connection goes on`, async t => {
      const stage = await startStage(t, { [side]: content, drops: '<drop/>' })
      const client = await shake(stage, side)
      const answer = await takeAnswer(client)
      assert.deepEqual([answer.status, answer.body], [403, FORBIDDEN])
      assert.deepEqual(answer.fields.get('content-type'), CONTENT['content-type'])
      assert.equal(answer.fields.get('connection'), undefined)
      assert.equal(stage.backend.peers.length, side === 'dispatchSeq' ? 0 : 1)
      client.send(PLAIN)
      const peer = await stage.backend.next()
      await peer.untilText('\r\n\r\n')
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      assert.equal((await takeAnswer(client)).body, 'ok')
      assert.equal(stage.gateway.metrics().counts.tunnelsOpened, 0)
      leave(stage, client)
    })
  }

  test(`a ${side} that calls itself without end, or fails: 500, and a line in the log`, async t => {
    const stage = await startStage(t, { [side]: `<sequence key="${side}"/><send/>` })
    const client = await shake(stage, side)
    const answer = await takeAnswer(client)
    assert.equal(answer.status, 500)
    assert.match(answer.body, /^\{"fault":\{"code":500,/)
    const said = stage.gateway.reports.filter(({ event }) => event === 'sequence failed')
    assert.deepEqual(
      said.map(({ fields }) => [fields.SEQUENCE, fields.CAUSE_OF_ERROR]),
      [[side, 'entered more than 100 sequences']],
    )
    leave(stage, client)
  })

  test(`the refusal of ${side} is worded by an edited sequence, and has the fields of CORS`, async t => {
    const worded = `${json('{"who":"$1"}', '$trp:X-Who')}${status(418)}<respond/>`
    const stage = await startStage(t, { [side]: '<drop/>', _auth_failure_handler_: worded }, { cors: OPEN_CORS })
    const client = await shake(stage, side, asking('websocket', 'X-Who: me', 'Origin: https://a.test'))
    const answer = await takeAnswer(client)
    assert.deepEqual([answer.status, answer.body], [418, '{"who":"me"}'])
    leave(stage, client)
  })
}

// ---- what is answered ----------------------------------------------------------------------------------------------

const ANSWERING: readonly (readonly [name: string, end: string])[] = [
  ['<respond/>', '<respond/>'],
  ['RESPONSE and <send/>', '<property name="RESPONSE" value="true"/><send/>'],
  ['RESPONSE as a truth, and <send/>', '<property name="RESPONSE" value="true" type="BOOLEAN"/><send/><drop/>'],
]

for (const side of SIDES) {
  for (const [name, end] of ANSWERING) {
    test(`a ${side} that ends with ${name} is the answer`, async t => {
      const content = `${json('{"for":"$1","at":"$2"}', '$trp:X-For', '$ctx:REST_API_CONTEXT')}${status(426)}
        <property name="X-Why" expression="$ctx:REST_SUB_REQUEST_PATH" scope="transport"/>
        <property name="activityid" value="mine" scope="transport"/>${end}`
      const stage = await startStage(t, { [side]: content })
      const [ofRequest, ofReply] = side === 'dispatchSeq' ? ['asks', 'no'] : ['no', 'answers']
      const client = await shake(stage, side, asking('websocket', `X-For: ${ofRequest}`, 'activityid: theirs'), [
        `X-For: ${ofReply}`,
      ])
      const answer = await takeAnswer(client)
      assert.deepEqual([answer.status, answer.reason], [426, 'Upgrade Required'])
      assert.equal(answer.body, `{"for":"${side === 'dispatchSeq' ? 'asks' : 'answers'}","at":"/echo"}`)
      assert.deepEqual(answer.fields.get('x-why'), ['/x'])
      assert.deepEqual(answer.fields.get('activityid'), ['theirs'])
      assert.equal(answer.fields.get('connection'), undefined)
      leave(stage, client)
    })
  }

  test(`no status of ${side} is one of tunnels or of no answer: 500`, async t => {
    const stage = await startStage(t, { [side]: `${status(101)}<respond/>` })
    const client = await shake(stage, side)
    assert.equal((await takeAnswer(client)).status, 500)
    leave(stage, client)
  })
}

test('what <in> and <out> hold is for the one and for the other', async t => {
  const content = `<in>${status(401)}</in><out>${status(402)}</out><respond/>`
  for (const side of SIDES) {
    const stage = await startStage(t, { [side]: content })
    const client = await shake(stage, side)
    assert.equal((await takeAnswer(client)).status, side === 'dispatchSeq' ? 401 : 402)
    leave(stage, client)
  }
})

/** By which path a sequence decides: the one that was matched, and that the backend gets. */
const BY_PATH =
  '<filter source="$ctx:REST_FULL_REQUEST_PATH" regex="/echo/closed.*"><then><drop/></then></filter><send/>'

for (const target of [
  '/echo/closed',
  '/echo//closed',
  '/echo/%63losed',
  '/echo/x/../closed',
  'http://b//echo/./closed',
]) {
  test(`dispatchSeq is told of the canonical path: ${target}`, async t => {
    const stage = await startStage(t, { dispatchSeq: BY_PATH })
    const client = await connectPeer(stage.gateway.port)
    client.send(asking('websocket').replace('/echo/x', target))
    assert.equal((await takeAnswer(client)).status, 403)
    leave(stage, client)
  })
}

const BY_FIELD = `<filter source="$trp:X-Key" regex="open sesame"><then><send/></then></filter>${status(401)}
  <log level="custom">
    <property name="key" expression="$trp:X-Key"/><property name="path" expression="$ctx:REST_FULL_REQUEST_PATH"/>
  </log>
  <respond/>`

for (const side of SIDES) {
  test(`${side} decides by a field: repeated, missing, in any case; and what it logs is in the log`, async t => {
    const stage = await startStage(t, { [side]: BY_FIELD })
    const cases: readonly (readonly [fields: readonly string[], status: number])[] = [
      [['x-KEY: open sesame'], 101],
      [['X-Key: open sesame', 'X-Key: x'], 401],
      [['X-Keys: open sesame'], 401],
      [[], 401],
    ]
    for (const [fields, expected] of cases) {
      const isOut = side === 'outDispatchSeq'
      const client = await connectPeer(stage.gateway.port)
      client.send(asking('websocket', ...(isOut ? [] : fields)))
      if (isOut || expected === 101) await agree(stage.backend, isOut ? fields : [])
      assert.equal((await takeAnswer(client)).status, expected)
      leave(stage, client)
    }
    const logged = stage.gateway.reports.filter(({ event }) => event === 'log of a sequence')
    assert.deepEqual(
      logged.map(({ fields }) => fields.MESSAGE),
      ['key = open sesame, x, path = /echo/x', 'key = , path = /echo/x', 'key = , path = /echo/x'],
    )
  })
}

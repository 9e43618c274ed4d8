/** The transformation of `mediation-*` in njs: the whole body is read, and a subrequest sends another one on. */
async function transform(r) {
  const order = JSON.parse(r.requestText)
  const body = JSON.stringify({ id: order.orderId, buyer: order.customer, lines: order.items, source: 'gateway' })
  const reply = await r.subrequest(`/passed${r.uri}`, { method: 'POST', body })
  r.headersOut['Content-Type'] = reply.headersOut['Content-Type']
  r.return(reply.status, reply.responseText)
}

export default { transform }

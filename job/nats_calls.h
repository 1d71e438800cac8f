/* SPDX-License-Identifier: Apache-2.0
 * The calls of libnats that a queue needs, found when one is opened. Its structs are those of the header, so that only
 * the library of this version will do. */
#ifndef JOB_NATS_CALLS_H
#define JOB_NATS_CALLS_H

#include <nats/nats.h>

#define NATS_NUMBER_TEXT(major, minor) "libnats.so." #major "." #minor
#define NATS_LIBRARY_OF(major, minor) NATS_NUMBER_TEXT(major, minor)
#define NATS_LIBRARY NATS_LIBRARY_OF(NATS_VERSION_MAJOR, NATS_VERSION_MINOR)

/* Name here, name there. */
#define NATS_CALLS(CALL)                                                                               \
    CALL(StatusText, natsStatus_GetText)                                                               \
    CALL(Close, nats_Close)                                                                            \
    CALL(Options_Create, natsOptions_Create)                                                           \
    CALL(Options_Destroy, natsOptions_Destroy)                                                         \
    CALL(Options_SetURL, natsOptions_SetURL)                                                           \
    CALL(Options_SetTimeout, natsOptions_SetTimeout)                                                   \
    CALL(Options_SetMaxReconnect, natsOptions_SetMaxReconnect)                                         \
    CALL(Options_SetName, natsOptions_SetName)                                                         \
    CALL(Options_SetCredentials, natsOptions_SetUserCredentialsFromFiles)                              \
    CALL(Options_SetReconnectBufSize, natsOptions_SetReconnectBufSize)                                 \
    CALL(Connect, natsConnection_Connect)                                                              \
    CALL(Connection_Status, natsConnection_Status)                                                     \
    CALL(GetStats, natsConnection_GetStats)                                                            \
    CALL(Statistics_Create, natsStatistics_Create)                                                     \
    CALL(Statistics_GetCounts, natsStatistics_GetCounts)                                               \
    CALL(Statistics_Destroy, natsStatistics_Destroy)                                                   \
    CALL(FlushTimeout, natsConnection_FlushTimeout)                                                    \
    CALL(Connection_Destroy, natsConnection_Destroy)                                                   \
    CALL(JetStream, natsConnection_JetStream)                                                          \
    CALL(Ctx_Destroy, jsCtx_Destroy)                                                                   \
    CALL(Options_Init, jsOptions_Init)                                                                 \
    CALL(StreamConfig_Init, jsStreamConfig_Init)                                                       \
    CALL(AddStream, js_AddStream)                                                                      \
    CALL(PurgeStream, js_PurgeStream)                                                                  \
    CALL(GetLastMsg, js_GetLastMsg)                                                                    \
    CALL(DeleteConsumer, js_DeleteConsumer)                                                            \
    CALL(GetStreamInfo, js_GetStreamInfo)                                                              \
    CALL(StreamInfo_Destroy, jsStreamInfo_Destroy)                                                     \
    CALL(GetConsumerInfo, js_GetConsumerInfo)                                                          \
    CALL(ConsumerInfo_Destroy, jsConsumerInfo_Destroy)                                                 \
    CALL(PubOptions_Init, jsPubOptions_Init)                                                           \
    CALL(PublishMsgAsync, js_PublishMsgAsync)                                                          \
    CALL(PublishAsyncComplete, js_PublishAsyncComplete)                                                \
    CALL(ConsumerConfig_Init, jsConsumerConfig_Init)                                                   \
    CALL(AddConsumer, js_AddConsumer)                                                                  \
    CALL(SubOptions_Init, jsSubOptions_Init)                                                           \
    CALL(PullSubscribe, js_PullSubscribe)                                                              \
    CALL(Subscription_Destroy, natsSubscription_Destroy)                                               \
    CALL(FetchRequest_Init, jsFetchRequest_Init)                                                       \
    CALL(FetchRequest, natsSubscription_FetchRequest)                                                  \
    CALL(MsgList_Destroy, natsMsgList_Destroy)                                                         \
    CALL(Msg_Create, natsMsg_Create)                                                                   \
    CALL(Msg_Destroy, natsMsg_Destroy)                                                                 \
    CALL(Msg_GetData, natsMsg_GetData)                                                                 \
    CALL(Msg_GetDataLength, natsMsg_GetDataLength)                                                     \
    CALL(Msg_GetSubject, natsMsg_GetSubject)                                                           \
    CALL(Header_Set, natsMsgHeader_Set)                                                                \
    CALL(Header_Get, natsMsgHeader_Get)                                                                \
    CALL(Msg_GetMetaData, natsMsg_GetMetaData)                                                         \
    CALL(MetaData_Destroy, jsMsgMetaData_Destroy)                                                      \
    CALL(Msg_Ack, natsMsg_Ack)                                                                         \
    CALL(Msg_Nak, natsMsg_Nak)                                                                         \
    CALL(Msg_InProgress, natsMsg_InProgress)

#define NATS_MEMBER(here, there) __typeof__(&there) here;
struct nats_calls {
    NATS_CALLS(NATS_MEMBER)
};

/* A row of a list of struct library_call. */
#define NATS_PLACE(here, there) {#there, &calls->here},

#endif

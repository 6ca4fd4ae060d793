#!/usr/bin/env python3
"""A gRPC server over Qdrant Edge, the engine of Qdrant as a library: what a Qdrant server answers to the calls
that the program makes, without a Qdrant server.

    server.py FOLDER PORT [API_KEY]

Each collection is a shard of Edge in a folder of its own. Messages are translated and nothing else: which points
a filter admits, what an operation changes and what is nearest is for the engine to say.
"""

import json
import os
import shutil
import sys
import threading
from concurrent import futures
from urllib.parse import quote, unquote

import grpc
import qdrant_edge as edge
from qdrant_client import grpc as messages
from qdrant_client.grpc import collections_service_pb2_grpc as collections_service
from qdrant_client.grpc import points_service_pb2_grpc as points_service
from qdrant_client.grpc import qdrant_pb2, qdrant_pb2_grpc

# The least that the program asks for.
VERSION = "1.18.0"
# Edge wants a shard to have vectors of some name; a server does not.
PLACEHOLDER = {"no vectors": edge.EdgeSparseVectorParams()}
# Points that are changed between two times that segments are put in order, which a server does by itself.
TIDY = 5000

COMPLETED = messages.UpdateResult(operation_id=0, status=messages.UpdateStatus.Completed)


class Refused(Exception):
    """What is answered in the place of an answer."""

    def __init__(self, code, said):
        super().__init__(said)
        self.code, self.said = code, said


class Shard:
    """A collection."""

    def __init__(self, path, fresh):
        self.path, self.lock, self.changed = path, threading.Lock(), 0
        if fresh:
            self.edge = edge.EdgeShard.create(path, edge.EdgeConfig(sparse_vectors=PLACEHOLDER))
        else:
            self.edge = edge.EdgeShard.load(path)

    def update(self, operation, points=1):
        with self.lock:
            self.edge.update(operation)
            self.changed += points
            if self.changed >= TIDY:
                self.edge.optimize()
                self.changed = 0
        return messages.PointsOperationResponse(result=COMPLETED)


class Shards:
    """All collections."""

    def __init__(self, folder):
        self.folder, self.lock, self.all = folder, threading.Lock(), {}
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            # What was being made or deleted when the server was killed.
            if os.path.exists(os.path.join(path, ".whole")):
                self.all[unquote(name)] = Shard(os.path.join(path, "shard"), fresh=False)
            else:
                shutil.rmtree(path)

    def path(self, name):
        return os.path.join(self.folder, quote(name, safe=""))

    def named(self, name):
        with self.lock:
            if name not in self.all:
                raise Refused(grpc.StatusCode.NOT_FOUND, f"Not found: Collection `{name}` doesn't exist!")
            return self.all[name]

    def make(self, name):
        with self.lock:
            if name in self.all:
                raise Refused(grpc.StatusCode.ALREADY_EXISTS, f"Collection `{name}` already exists!")
            path = self.path(name)
            os.makedirs(path)
            self.all[name] = Shard(os.path.join(path, "shard"), fresh=True)
            self.all[name].edge.flush()
            open(os.path.join(path, ".whole"), "w").close()

    def delete(self, name):
        with self.lock:
            shard = self.all.pop(name, None)
            if shard is None:
                return False
            os.remove(os.path.join(self.path(name), ".whole"))
            with shard.lock:
                shard.edge.close()
            shutil.rmtree(self.path(name))
            return True


def point_id(message):
    return message.num if message.WhichOneof("point_id_options") == "num" else message.uuid


def id_message(point):
    return messages.PointId(num=point) if isinstance(point, int) else messages.PointId(uuid=str(point))


def value(message):
    kind = message.WhichOneof("kind")
    if kind in (None, "null_value"):
        return None
    if kind == "struct_value":
        return {name: value(one) for name, one in message.struct_value.fields.items()}
    if kind == "list_value":
        return [value(one) for one in message.list_value.values]
    return getattr(message, kind)


def value_message(found):
    if found is None:
        return messages.Value(null_value=0)
    if isinstance(found, bool):
        return messages.Value(bool_value=found)
    if isinstance(found, int):
        return messages.Value(integer_value=found)
    if isinstance(found, float):
        return messages.Value(double_value=found)
    if isinstance(found, str):
        return messages.Value(string_value=found)
    if isinstance(found, list):
        return messages.Value(list_value=messages.ListValue(values=[value_message(one) for one in found]))
    fields = {name: value_message(one) for name, one in found.items()}
    return messages.Value(struct_value=messages.Struct(fields=fields))


def payload(message):
    return {name: value(one) for name, one in message.items()}


def payload_message(found):
    return {name: value_message(one) for name, one in (found or {}).items()}


def with_payload(message):
    kind = message.WhichOneof("selector_options")
    if kind == "include":
        return edge.PayloadSelector.Include(list(message.include.fields))
    return kind == "enable" and message.enable


def set_fields(message):
    """The fields of a message that are set, of which all others must not be."""
    return {descriptor.name: found for descriptor, found in message.ListFields()}


def unknown(what):
    raise Refused(grpc.StatusCode.UNIMPLEMENTED, f"this server does not know {what}")


def match(message):
    kind = message.WhichOneof("match_value")
    if kind in ("keyword", "integer", "boolean"):
        return edge.MatchValue(getattr(message, kind))
    if kind == "keywords":
        return edge.MatchAny(list(message.keywords.strings))
    unknown(f"the match `{kind}`")


def condition(message):
    kind = message.WhichOneof("condition_one_of")
    if kind == "filter":
        return filter_of(message.filter)
    if kind == "has_id":
        return edge.HasIdCondition({point_id(one) for one in message.has_id.has_id})
    if kind != "field":
        unknown(f"the condition `{kind}`")
    fields = set_fields(message.field)
    key = fields.pop("key")
    if set(fields) == {"match"}:
        return edge.FieldCondition(key, match=match(fields["match"]))
    if set(fields) == {"range"}:
        bounds = {name: bound for name, bound in set_fields(fields["range"]).items()}
        # A bound of 0 is a bound.
        for name in ("gte", "gt", "lte", "lt"):
            if fields["range"].HasField(name):
                bounds[name] = getattr(fields["range"], name)
        return edge.FieldCondition(key, range=edge.RangeFloat(**bounds))
    unknown(f"the condition {fields}")


def filter_of(message):
    fields = set_fields(message)
    if not set(fields) <= {"must", "must_not", "should"}:
        unknown(f"the filter {fields}")
    lists = {name: [condition(one) for one in conditions] for name, conditions in fields.items()}
    return edge.Filter(**lists)


def optional_filter(request, name="filter"):
    return filter_of(getattr(request, name)) if request.HasField(name) else None


def named_vectors(message):
    kind = message.WhichOneof("vectors_options")
    if kind != "vectors":
        unknown(f"vectors as `{kind}`")
    for one in message.vectors.vectors.values():
        if one.WhichOneof("vector") != "dense":
            unknown("vectors that are not dense")
    return {name: list(one.dense.data) for name, one in message.vectors.vectors.items()}


def waits(request):
    if not request.wait:
        unknown("writes that are not waited for")


class Root(qdrant_pb2_grpc.QdrantServicer):
    def HealthCheck(self, request, context):
        return qdrant_pb2.HealthCheckReply(title="Qdrant Edge", version=VERSION)


class Collections(collections_service.CollectionsServicer):
    def __init__(self, shards):
        self.shards = shards

    def CollectionExists(self, request, context):
        exists = request.collection_name in self.shards.all
        return messages.CollectionExistsResponse(result=messages.CollectionExists(exists=exists))

    def List(self, request, context):
        names = [messages.CollectionDescription(name=name) for name in sorted(self.shards.all)]
        return messages.ListCollectionsResponse(collections=names)

    def Create(self, request, context):
        if request.vectors_config.params_map.map or request.shard_number != 1:
            unknown("collections with vectors or several shards")
        self.shards.make(request.collection_name)
        return messages.CollectionOperationResponse(result=True)

    def Delete(self, request, context):
        return messages.CollectionOperationResponse(result=self.shards.delete(request.collection_name))


class Points(points_service.PointsServicer):
    def __init__(self, shards):
        self.shards = shards

    def Upsert(self, request, context):
        waits(request)
        # What a server says of a point without the field.
        if not all(point.HasField("vectors") for point in request.points):
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, "Expected some vectors")
        points = [
            edge.Point(point_id(point.id), named_vectors(point.vectors), payload(point.payload))
            for point in request.points
        ]
        modes = [edge.UpdateMode.Upsert, edge.UpdateMode.InsertOnly, edge.UpdateMode.UpdateOnly]
        mode = modes[request.update_mode] if request.HasField("update_mode") else None
        operation = edge.UpdateOperation.upsert_points(points, optional_filter(request, "update_filter"), mode)
        return self.shards.named(request.collection_name).update(operation, len(points))

    def Delete(self, request, context):
        waits(request)
        if request.points.WhichOneof("points_selector_one_of") == "filter":
            operation = edge.UpdateOperation.delete_points_by_filter(filter_of(request.points.filter))
        else:
            operation = edge.UpdateOperation.delete_points([point_id(one) for one in request.points.points.ids])
        return self.shards.named(request.collection_name).update(operation)

    def SetPayload(self, request, context):
        return self.change_payload(request, edge.UpdateOperation.set_payload_by_filter)

    def OverwritePayload(self, request, context):
        return self.change_payload(request, edge.UpdateOperation.overwrite_payload_by_filter)

    def change_payload(self, request, operation):
        waits(request)
        if request.points_selector.WhichOneof("points_selector_one_of") != "filter" or request.HasField("key"):
            unknown("payload set other than by a filter")
        changed = operation(filter_of(request.points_selector.filter), payload(request.payload))
        return self.shards.named(request.collection_name).update(changed)

    def UpdateVectors(self, request, context):
        waits(request)
        points = [edge.PointVectors(point_id(one.id), named_vectors(one.vectors)) for one in request.points]
        operation = edge.UpdateOperation.update_vectors(points, optional_filter(request, "update_filter"))
        return self.shards.named(request.collection_name).update(operation, len(points))

    def CreateVectorName(self, request, context):
        waits(request)
        config = request.dense_config
        distances = {messages.Distance.Cosine: edge.Distance.Cosine}
        datatypes = {messages.Datatype.Float16: edge.VectorStorageDatatype.Float16}
        operation = edge.UpdateOperation.create_dense_vector(
            request.vector_name, config.size, distances[config.distance], None, datatypes[config.datatype]
        )
        return self.shards.named(request.collection_name).update(operation)

    def DeleteVectorName(self, request, context):
        waits(request)
        operation = edge.UpdateOperation.delete_vector_name(request.vector_name)
        return self.shards.named(request.collection_name).update(operation)

    def CreateFieldIndex(self, request, context):
        waits(request)
        kinds = {
            messages.FieldType.FieldTypeKeyword: edge.PayloadSchemaType.Keyword,
            messages.FieldType.FieldTypeInteger: edge.PayloadSchemaType.Integer,
        }
        operation = edge.UpdateOperation.create_field_index(request.field_name, kinds[request.field_type])
        return self.shards.named(request.collection_name).update(operation)

    def Get(self, request, context):
        shard = self.shards.named(request.collection_name)
        found = shard.edge.retrieve([point_id(one) for one in request.ids], with_payload(request.with_payload), False)
        result = [messages.RetrievedPoint(id=id_message(one.id), payload=payload_message(one.payload)) for one in found]
        return messages.GetResponse(result=result)

    def Scroll(self, request, context):
        shard = self.shards.named(request.collection_name)
        asked = edge.ScrollRequest(
            offset=point_id(request.offset) if request.HasField("offset") else None,
            limit=request.limit,
            filter=optional_filter(request),
            with_payload=with_payload(request.with_payload),
            with_vector=False,
        )
        found, after = shard.edge.scroll(asked)
        result = [messages.RetrievedPoint(id=id_message(one.id), payload=payload_message(one.payload)) for one in found]
        return messages.ScrollResponse(result=result, next_page_offset=None if after is None else id_message(after))

    def Count(self, request, context):
        shard = self.shards.named(request.collection_name)
        counted = shard.edge.count(edge.CountRequest(filter=optional_filter(request), exact=request.exact))
        return messages.CountResponse(result=messages.CountResult(count=counted))

    def Query(self, request, context):
        shard = self.shards.named(request.collection_name)
        kind = request.query.WhichOneof("variant")
        if kind == "nearest":
            query = edge.Query.Nearest(list(request.query.nearest.dense.data), request.using)
        elif kind == "order_by":
            directions = [edge.Direction.Asc, edge.Direction.Desc]
            order = request.query.order_by
            query = edge.OrderBy(order.key, directions[order.direction])
        else:
            unknown(f"the query `{kind}`")
        params = request.params
        asked = edge.QueryRequest(
            limit=request.limit,
            offset=request.offset,
            query=query,
            filter=optional_filter(request),
            with_payload=with_payload(request.with_payload),
            with_vector=False,
            params=edge.SearchParams(
                hnsw_ef=params.hnsw_ef if params.HasField("hnsw_ef") else None,
                exact=params.exact,
            ),
        )
        result = [
            messages.ScoredPoint(id=id_message(one.id), payload=payload_message(one.payload), score=one.score)
            for one in shard.edge.query(asked)
        ]
        return messages.QueryResponse(result=result)


class Translated(grpc.ServerInterceptor):
    """Keys are looked at, and what is raised becomes a status."""

    def __init__(self, key):
        self.key = key

    def intercept_service(self, continuation, details):
        handler = continuation(details)
        if handler is None:
            return None
        given = dict(details.invocation_metadata).get("api-key")

        def answer(request, context):
            if self.key and given != self.key:
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "Must provide an API key or an Authorization bearer token")
            try:
                return handler.unary_unary(request, context)
            except Refused as refused:
                context.abort(refused.code, refused.said)
            except Exception as error:
                said = str(error)
                missing = said.startswith("No point with id")
                code = grpc.StatusCode.NOT_FOUND if missing else grpc.StatusCode.INVALID_ARGUMENT
                print(json.dumps({"method": details.method, "error": said}), file=sys.stderr, flush=True)
                context.abort(code, said)

        return grpc.unary_unary_rpc_method_handler(answer, handler.request_deserializer, handler.response_serializer)


def main():
    folder, port, *key = sys.argv[1:]
    shards = Shards(folder)
    server = grpc.server(
        futures.ThreadPoolExecutor(16),
        interceptors=[Translated(key[0] if key else None)],
        options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
    )
    qdrant_pb2_grpc.add_QdrantServicer_to_server(Root(), server)
    collections_service.add_CollectionsServicer_to_server(Collections(shards), server)
    points_service.add_PointsServicer_to_server(Points(shards), server)
    if server.add_insecure_port(f"127.0.0.1:{port}") == 0:
        sys.exit(f"port {port} is taken")
    server.start()
    print("listening", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
